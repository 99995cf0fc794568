// What a call leaves at work on the device, of what its success says that it is over, and which of its
// arguments a driver may refuse at once: as words of a table's line (describe.hh) and as values. Constexpr,
// no state.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "api/changes.hh"

namespace outboard::api {

/// What a call leaves at work, by what that may do with memory of both machines.
enum class left_work : std::uint8_t {
  none,
  kernels,         ///< reads and writes what kernels know
  functions,       ///< functions of the program's
  graphs,          ///< anything
  preparations,    ///< of graphs, for their launch: touches nothing
  copies,          ///< reads and writes by address
  copies_in,       ///< from the program's memory
  copies_out,      ///< to the program's memory: reads memory of the device
  fills,           ///< writes by address
  moves,           ///< changes where memory lies, or unpacks it
  waits_for_word,  ///< reads a word until it has a value
  writes_word,
  operations,  ///< lists of the two
  order        ///< nothing, but what comes then is behind what is at work elsewhere
};

constexpr bool copies(left_work what) {
  return what == left_work::copies || what == left_work::copies_in || what == left_work::copies_out;
}

/// What is over when the call has succeeded.
enum class over : std::uint8_t {
  nothing,
  context,  ///< what its context had at work
  stream,   ///< what stands in the stream that is its first argument
  event     ///< what stands before the event that is its first argument
};

/// What a driver may refuse at once in a post, so that it waits then for the driver's word.
enum class doubt : std::uint8_t {
  none,
  stream_flags,       ///< its second argument
  default_stream,     ///< its first argument is one
  event_flags,        ///< its second argument
  record,             ///< event and stream of two contexts
  record_with_flags,  ///< the same, or the third argument
  captured_event,     ///< or flags
  other_device,       ///< one of two addresses is of another device
  capture             ///< while any stream captures
};

namespace detail {

inline constexpr std::array left_words =
    std::to_array<change_word<left_work>>({{"kernels", left_work::kernels},
                                           {"functions", left_work::functions},
                                           {"graphs", left_work::graphs},
                                           {"preparations", left_work::preparations},
                                           {"copies", left_work::copies},
                                           {"copies_in", left_work::copies_in},
                                           {"copies_out", left_work::copies_out},
                                           {"fills", left_work::fills},
                                           {"moves", left_work::moves},
                                           {"waits_for_word", left_work::waits_for_word},
                                           {"writes_word", left_work::writes_word},
                                           {"operations", left_work::operations},
                                           {"order", left_work::order}});

inline constexpr std::array over_words = std::to_array<change_word<over>>(
    {{"context", over::context}, {"stream", over::stream}, {"event", over::event}});

inline constexpr std::array doubt_words =
    std::to_array<change_word<doubt>>({{"stream_flags", doubt::stream_flags},
                                       {"default_stream", doubt::default_stream},
                                       {"event_flags", doubt::event_flags},
                                       {"record", doubt::record},
                                       {"record_with_flags", doubt::record_with_flags},
                                       {"captured_event", doubt::captured_event},
                                       {"other_device", doubt::other_device},
                                       {"capture", doubt::capture}});

}  // namespace detail
}  // namespace outboard::api
