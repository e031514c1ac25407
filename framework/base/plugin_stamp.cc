// Part of every plug-in, and of no program: tells what the plug-in was built with.
#include "framework/base/plugin_stamp.h"

extern "C" const char* phalanx_plugin_stamp() {
  static const std::string stamp = phalanx::plugin_stamp();
  return stamp.c_str();
}
