// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::site {

/// The files of app/: the page, its style in addition to the style of run pages, and its scripts, joined.
extern const char* const kSitePage;
extern const char* const kSiteStyle;
extern const char* const kSiteScript;

}  // namespace phalanx::site
