// SPDX-License-Identifier: Apache-2.0
#pragma once

// LibTorch's headers include this file, but nothing that tests compile uses the driver's interface.
