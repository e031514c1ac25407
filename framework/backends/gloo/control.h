// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/authenticating_listener.h"
#include "framework/base/descriptor.h"
#include "framework/base/handshake.h"
#include "framework/comm/membership/message.h"
#include "framework/comm/membership/view.h"

namespace phalanx::gloo {

/// The meeting point of a group's members after a loss: a socket at which each of them listens as long as it has
/// the group, or one that was shrunk from it. The id of a member is its rank in the first of these groups.
///
/// Nobody is accepted there, and nothing read, before this rank calls shrink(). If the socket of a member refuses
/// connections, the member has ended or has left the group. This assumes that no firewall between members rejects
/// packets; it may drop them.
struct Control {
  std::string group;                                      // name of the first group
  std::int64_t own = 0;                                   // this member
  std::vector<std::string> addresses{};                   // by id
  std::string secret{};                                   // that the members must know
  std::vector<int> numbers{};                             // by id: the rank in the job
  Descriptor listener{};                                  // invalid if there is only one member
  std::set<std::int64_t> gone{};                          // members that have ended or left
  std::map<std::int64_t, membership::Message> commits{};  // by number of the view that ended: what was agreed on
  std::map<std::int64_t, std::string> calls{};  // of shrink(), by number of the group's view: why it failed, or ""

  std::uint64_t numbered = 0;                        // number of the last text that this member has sent
  std::map<std::int64_t, std::uint64_t> received{};  // by sender: the number of the last text that has arrived
};

/// A group's place among those that were shrunk from one another.
struct Standing {
  std::shared_ptr<Control> control{};
  View view{};  // its ranks

  /// Returns the rank in the job of a rank of the group.
  int number_of(int rank) const { return control->numbers.at(view.members.at(rank).id); }
};

/// The connections of this member to all others of a Control that are not gone, for the time of one shrink(). It dials
/// each of them, sends over the connections that it has dialed, and receives over those that it has accepted. Both ends
/// of a connection prove that they know the secret and which members they are, before anything else is parsed.
///
/// A member that does not answer is dialed again and again. A text is sent again over the next connection if a
/// connection ends before the receiver has acknowledged it. The receiver gets it once. Not thread-safe.
class ControlLinks {
 public:
  /// Is called with each text that another member has sent, in the order of sending.
  using Receive = std::function<void(std::int64_t from, std::string_view text)>;

  explicit ControlLinks(Control& control);
  ~ControlLinks();

  /// Sends a text as soon as there is a connection. Does not block. Returns the number of the text; 0 if nobody
  /// receives it, because the member is this one or gone.
  std::uint64_t send(std::int64_t to, std::string_view text);

  /// Returns true if a member has received the text of this number, and all those that were sent to it before.
  bool has_received(std::int64_t member, std::uint64_t text) const;

  /// Returns the reason why there is no connection to a member: the last failure, or an empty text if nothing has
  /// failed.
  std::string problem(std::int64_t member) const;

  /// Moves what can be moved, and calls `receive`. If nothing moves, returns after a millisecond, or 20 if nothing has
  /// moved for a while; hosts that do not answer do not delay it. Adds to Control::gone. Throws a CommError: kSystem if
  /// a member sends what cannot be read, or the system refuses.
  void pump(const Receive& receive);

 private:
  using Clock = std::chrono::steady_clock;
  struct Out;
  struct In;

  bool dial(Out& out);
  void drop(Out& out, const std::string& why);
  bool move(Out& out);
  bool greet(Out& out);
  bool write(Out& out);
  bool take(In& in, const Receive& receive);
  bool acknowledge(const In& in) const;

  Control& control_;
  AuthenticatingListener door_;
  std::map<std::int64_t, Out> outs_;
  std::list<In> ins_;
  Clock::time_point moved_ = Clock::now();
};

}  // namespace phalanx::gloo
