#include "api/cuda/coverage.hh"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "api/cuda/functions.hh"

namespace outboard::api {
namespace {

struct family {
  std::string_view name, title, reason;
};

constexpr family families[] = {
    {"graphics", "Graphics interoperability",
     "It maps buffers of a graphics API that runs in the client's own process, on the client's display, into "
     "the address "
     "space of the GPU; that GPU is on another machine. Nothing but the registrations below could make such "
     "a resource."},
    {"opengl", "OpenGL",
     "It names objects of the client's own OpenGL context, which the remote driver cannot see."},
    {"egl", "EGL",
     "It names images, streams and syncs of the client's own EGL display, which the remote driver cannot "
     "see."},
    {"vdpau", "VDPAU",
     "It names surfaces of the client's own VDPAU device, which the remote driver cannot see."},
};

/// Functions that are there and keep the driver's codes, but cannot do all that a local driver does.
struct limited {
  std::string_view title, reason, functions;
};

constexpr limited limits[] = {
    {"Core dumps",
     "The attributes are kept and told, of the process and of contexts, and begin with what the environment "
     "says. Dumping itself cannot be switched on for contexts to come (CUDA_ERROR_NOT_SUPPORTED; by the "
     "environment: a line on stderr): the driver would write the file in the worker, and a client names no "
     "path on a server. For a context that lives already the switch turns and does nothing, as with a "
     "driver.",
     "cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal"},
    {"Checkpoints",
     "A process number means that process's session on the same back-end, among those of one identity; any "
     "other is a process without CUDA (CUDA_ERROR_NOT_INITIALIZED). The server's driver takes the worker to "
     "pieces and puts it together again; the cpu device has nothing to release, there it is a matter of "
     "states. The thread that restores is the worker's and has no number on the client "
     "(CUDA_ERROR_NOT_SUPPORTED). While another process holds the lock, what the front-end answers by itself "
     "does not wait; on the cpu device kernels that were launched go on.",
     "cuCheckpointProcessCheckpoint cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessLock "
     "cuCheckpointProcessRestore"},
    {"Foreign memory and semaphores",
     "A descriptor on the client leads to a GPU of the server only if it came from "
     "cuMemExportToShareableHandle: such memory is imported and mapped. Anything else is an object of a "
     "graphics API on the client's machine and gets the driver's code for a foreign object; CUDA itself "
     "makes "
     "no semaphores, so none can be imported, and no graph has nodes of them.",
     "cuImportExternalMemory cuExternalMemoryGetMappedMipmappedArray cuImportExternalSemaphore "
     "cuSignalExternalSemaphoresAsync cuWaitExternalSemaphoresAsync cuDestroyExternalSemaphore "
     "cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode"},
    {"Device addresses of 32 bits",
     "They belong to contexts of cuCtxCreate's first version; in others drivers refuse them, and so do we. "
     "Our "
     "addresses lie above 4 GiB, so nothing can be allocated in such a context.",
     "cuMemAlloc cuMemAllocPitch"},
    {"What drivers of GPUs behind PCIe refuse",
     "Answered with the codes of such a driver, whatever is asked.",
     "cuDeviceGetNvSciSyncAttributes cuLibraryGetUnifiedFunction cuProfilerInitialize"},
    {"Memory budgets",
     "Registrations are kept; the callback never comes, because a session cannot hold more than its share.",
     "cuDeviceRegisterAsyncNotification"},
    {"The log of failed calls",
     "Each failed call is a line in the driver's form. What the driver adds about the cause is not there.",
     "cuLogsDumpToMemory cuLogsDumpToFile cuLogsRegisterCallback"},
    {"Green contexts",
     "They are the vendor's. A session that uses them cannot be rebuilt on another GPU. The cpu device has "
     "none (CUDA_ERROR_NOT_SUPPORTED), as it has no tensor maps, sparse arrays or decompression engine.",
     "cuGreenCtxCreate"},
};

/// How functions travel: a column of the page.
struct kind_column {
  kind how;
  std::string_view title, meaning;
};

constexpr kind_column columns[] = {
    {kind::call, "call", "travels and waits for its reply"},
    {kind::post, "post", "travels, nobody waits; checked on the front-end"},
    {kind::custom, "custom",
     "hand-written ends, the same wire; *or via*: also under the opcodes of the functions that are named"},
    {kind::via, "via",
     "a hand-written front-end, whose request goes under the opcode of the function that is named, or of one "
     "of them; *aside*: in the hello of a connection of its own"},
    {kind::local, "local",
     "answered by the front-end: nothing travels, but for the question whether an open capture forbids it"},
    {kind::later, "later", "promised, not there yet: unknown to cuGetProcAddress, NOT_SUPPORTED when called"},
    {kind::refused, "refused", "a gap with a reason, below; behaves as later"},
};

using counts = std::array<int, std::size(columns)>;

bool belongs(const function_info& f, const kind_column& c) { return f.about.how == c.how; }

void add(counts& n, const function_info& f) {
  for (std::size_t i = 0; i < n.size(); ++i) n[i] += belongs(f, columns[i]);
}

void print_row(std::string& out, std::string_view title, const counts& n) {
  out.append("| ").append(title);
  int all = 0;
  for (int k : n) {
    out.append(" | ").append(k == 0 ? std::string() : std::to_string(k));
    all += k;
  }
  out.append(" | ").append(std::to_string(all)).append(" |\n");
}

void print_counts(std::string& out) {
  out += "| chapter";
  for (const kind_column& c : columns) out.append(" | ").append(c.title);
  out += " | all |\n|---|---|---|---|---|---|---|---|---|\n";
  counts total{}, chapter{};
  std::string_view current = functions().front().chapter;
  for (const function_info& f : functions()) {
    if (f.chapter != current) {
      print_row(out, current, chapter);
      chapter = {};
      current = f.chapter;
    }
    add(chapter, f);
    add(total, f);
  }
  print_row(out, current, chapter);
  print_row(out, "**all**", total);
}

/// What stands before the names: also the functions under whose opcodes they go.
std::string way_of(const function_info& f, const kind_column& column) {
  const travel how = f.about.travels;
  std::string way(how == travel::aside ? "aside" : column.title);
  if (f.about.via.empty()) return way;
  if (how == travel::aside || how == travel::handled) way += " or via";
  return way.append(" ").append(f.about.via);
}

/// The names of one chapter and kind, a paragraph for each way that they travel.
void print_names(std::string& out, std::string_view chapter, const kind_column& column) {
  std::vector<std::pair<std::string, std::string>> ways;
  for (const function_info& f : functions()) {
    if (f.chapter != chapter || !belongs(f, column)) continue;
    const std::string way = way_of(f, column);
    const auto same = [&](const auto& known) { return known.first == way; };
    auto at = std::find_if(ways.begin(), ways.end(), same);
    if (at == ways.end()) at = ways.insert(at, {way, {}});
    at->second.append(" ").append(f.name);
  }
  for (const auto& [way, names] : ways) out.append("- ").append(way).append(":").append(names).append("\n");
}

void print_refused(std::string& out) {
  for (const family& refused : families) {
    out.append("- **").append(refused.title).append("**: ").append(refused.reason).append("\n ");
    for (const function_info& f : functions()) {
      if (f.about.how == kind::refused && f.text == refused.name) out.append(" ").append(f.name);
    }
    out += "\n";
  }
}

void print_limits(std::string& out) {
  for (const limited& l : limits)
    out.append("- **").append(l.title).append("**: ").append(l.reason).append("\n  ").append(l.functions) +=
        "\n";
}

}  // namespace

std::string_view refusal_reason(std::string_view name) {
  for (const family& f : families) {
    if (f.name == name) return f.reason;
  }
  return {};
}

std::string coverage_page() {
  std::string out =
      "# Coverage of the CUDA driver API\n\n"
      "Printed from `src/api/cuda/*.def` by `outboard_coverage`; a test compares. Every symbol of cuda.h, "
      "cudaProfiler.h,\n"
      "cudaGL.h, cudaEGL.h and cudaVDPAU.h is listed, old versions and per-thread-default-stream entries "
      "too.\n\n";
  for (const kind_column& c : columns)
    out.append("- ").append(c.title).append(": ").append(c.meaning).append("\n");
  out += "\n";
  print_counts(out);
  out += "\n## Refused, and why\n\n";
  print_refused(out);
  out += "\n## There, with limits\n\n";
  print_limits(out);
  out += "\n## By chapter\n";
  std::string_view current;
  for (const function_info& f : functions()) {
    if (f.chapter == current) continue;
    current = f.chapter;
    out.append("\n### ").append(current).append("\n\n");
    for (const kind_column& c : columns) print_names(out, current, c);
  }
  return out;
}

}  // namespace outboard::api
