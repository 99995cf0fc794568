#include "api/cuda/behaviour.hh"

#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace outboard::api {
namespace {

/// Collects the answers of one line.
class answers {
 public:
  void add(bool holds, std::string_view word) {
    if (holds) text_.append(text_.empty() ? "" : " ").append(word);
  }
  template <class T>
  void value(bool holds, std::string_view word, T value) {
    if (!holds) return;
    std::ostringstream out;
    out << word << '=' << value;
    add(true, out.str());
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_captures(answers& a, const function_info& f) {
  const bool hand_written = f.about.how == kind::custom || f.about.how == kind::local;
  a.add(hand_written && f.about.unsafe && !f.about.captured, "asks_capture");
  // The first version's fills never reach a device.
  const bool arrives = f.about.how != kind::local || f.about.fill == no_parameter;
  a.add(arrives && f.about.unsafe && !f.about.captured, "device_refuses_in_capture");
}

void add_work(answers& a, const description& d) {
  a.add(d.work, "works");
  a.add(d.reads, "only_reads");
  a.add(!d.quiet && (d.deferred || d.waits), "tells_completion");
  a.add(d.drains, "ends_work_of_context");
  a.add(d.asks == completion::stream, "asks_of_stream");
  a.add(d.asks == completion::event, "asks_of_event");
  a.add(d.asks == completion::context, "asks_of_context");
  a.add(d.light, "light");
  a.add(d.passes_frees, "passes_frees");
  a.add(d.sends_frees, "sends_frees_itself");
}

/// The flow of the work that a message begins: where the message says it.
void add_flow(answers& a, const description& d) {
  a.value(d.flow == flow_place::launch, "flow", "launch");
  a.value(d.flow == flow_place::graph_launch, "flow", "graph_launch");
  a.value(d.flow == flow_place::copy_across, "flow", "copy_across");
  a.value(d.flow == flow_place::copy_in, "flow", "copy_in");
  a.value(d.flow == flow_place::prefetch, "flow", "prefetch");
  a.value(d.flow == flow_place::last_parameter, "flow", "last_parameter");
  a.value(d.flow == flow_place::default_stream, "flow", "default_stream");
}

/// Sizes and kinds of the arguments, for words whose meaning depends on a parameter's type.
struct argument {
  std::size_t size = 0;
  bool is_stream = false, is_event = false;
};
template <class T>
constexpr argument describe_argument() {
  if constexpr (std::is_pointer_v<T>) {
    return {sizeof(T), std::is_same_v<T, CUstream> || std::is_same_v<T, const CUlaunchConfig*>,
            std::is_same_v<T, CUevent>};
  }
  return {sizeof(T)};
}
template <class R, class... A>
std::vector<argument> describe_arguments(R (*)(A...)) {
  return {describe_argument<A>()...};
}

std::vector<argument> arguments_of(opcode code) {
#define OUTBOARD_ARGUMENTS_call(symbol) \
  if (code == opcode::symbol)           \
    return describe_arguments(static_cast<function<opcode::symbol>::prototype*>(nullptr));
#define OUTBOARD_ARGUMENTS_post OUTBOARD_ARGUMENTS_call
#define OUTBOARD_ARGUMENTS_custom OUTBOARD_ARGUMENTS_call
#define OUTBOARD_ARGUMENTS_local OUTBOARD_ARGUMENTS_call
#define OUTBOARD_ARGUMENTS_refused(symbol)
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ARGUMENTS_##how(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
  return {};
}

void add_events(answers& a, const description& d, const std::vector<argument>& arguments) {
  const auto destroys = [&](bool argument::*what) {
    return d.destroys != no_parameter && arguments[d.destroys].*what;
  };
  a.add(d.records != no_parameter, "records_event");
  a.add(d.awaits != no_parameter, "awaits_event");
  a.add(destroys(&argument::is_event), "forgets_event");
  a.add(destroys(&argument::is_stream), "doubts_default_stream");
  a.add(d.of_object, "of_object");
}

/// What a post's arguments must be like to be sent without waiting.
void add_doubts(answers& a, const description& d, const std::vector<argument>& arguments) {
  a.value(d.plain != no_parameter, "plain_flags",
          std::to_string(d.plain) + "&" + std::to_string(d.plain_bits));
  if (d.aligned != no_parameter) a.value(true, "aligned", arguments[d.aligned].size);
  if (d.fill != no_parameter) a.value(true, "element", arguments[d.fill].size);
  a.value(d.fill != no_parameter, "here", "0");
  a.value(d.copies, "here", "0,1");
  std::string extent;
  if (d.rows != no_parameter) extent = std::to_string(d.pitch) + ",";
  extent += std::to_string(d.extent);
  if (d.rows != no_parameter) extent += "," + std::to_string(d.rows);
  a.value(d.extent != no_parameter, "extent", extent);
}

void add_places(answers& a, const function_info& f, bool in_stream) {
  const description& d = f.about;
  a.add(d.stream_context, "context_of_stream");
  a.add(d.context_of != no_parameter, "context_of_object");
  a.add(is_per_thread(f.name), "per_thread");
  // The first version's copies are made by the second version's, whose ends are generated.
  const bool within = d.copies && (d.how == kind::call || d.how == kind::post);
  a.value(within, "within_device",
          std::string(in_stream ? "stream" : "sync") + (d.per_thread ? "_per_thread" : ""));
  a.add(d.unlocked, "passes_lock");
  a.add(d.gate == gatekeeper::init, "entry_checks_init");
  a.add(d.gate == gatekeeper::end, "end_checks_first");
}

void add_back_end(answers& a, const description& d) {
  a.add(d.no_work, "leaves_no_work");
  a.add(d.waits || d.deferred || d.fence || d.destroys != no_parameter || d.tells_end, "may_tell_of_the_end");
  a.add(d.loads_code, "loads_code");
  a.add(d.makes_graph, "makes_graph");
  a.add(d.any_thread, "any_thread");
  a.add(d.flow == flow_place::launch, "launch");
}

std::string streams_among(const std::vector<argument>& arguments) {
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_stream) text += (text.empty() ? "" : ",") + std::to_string(i);
  }
  return text;
}

}  // namespace

std::string behaviour_of(const function_info& f) {
  answers a;
  const std::vector<argument> arguments = arguments_of(f.code);
  const std::string streams = streams_among(arguments);
  a.value(!streams.empty(), "streams", streams);
  add_captures(a, f);
  add_work(a, f.about);
  add_flow(a, f.about);
  add_events(a, f.about, arguments);
  add_doubts(a, f.about, arguments);
  add_places(a, f, !streams.empty());
  add_back_end(a, f.about);
  return a.take();
}

}  // namespace outboard::api
