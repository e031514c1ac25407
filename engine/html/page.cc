// SPDX-License-Identifier: Apache-2.0
#include "engine/html/page.h"

#include "engine/html/style.h"
#include "framework/base/escape_html.h"

namespace phalanx {

std::string to_page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escape_html(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<main>\n" + body +
         "</main>\n<script>" + kScript + "</script>\n</body>\n</html>\n";
}

std::string to_section(const std::string& title, const std::string& content) {
  if (content.empty()) return {};
  return "<section>\n<h2>" + escape_html(title) + "</h2>\n" + content + "</section>\n";
}

std::string to_tiles(const std::vector<std::pair<std::string, std::string>>& tiles) {
  std::string text = "<dl class=\"tiles\">\n";
  for (const auto& [value, what] : tiles) {
    text += "<div><dt>" + escape_html(what) + "</dt><dd>" + escape_html(value) + "</dd></div>\n";
  }
  return text + "</dl>\n";
}

std::string to_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"wide\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += i == 0 ? "<thead><tr>" : "<tr>";
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const std::string tag = i == 0 || j == 0 ? "th" : "td";
      text += "<" + tag + ">" + escape_html(rows[i][j]) + "</" + tag + ">";
    }
    text += i == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace phalanx
