#include "framework/parallel/padding.h"

#include <utility>

namespace phalanx {
namespace {

thread_local bool padding_only = false;

}  // namespace

PaddingOnly::PaddingOnly(bool only) : before_(std::exchange(padding_only, only)) {}

PaddingOnly::~PaddingOnly() { padding_only = before_; }

bool PaddingOnly::current() { return padding_only; }

}  // namespace phalanx
