#include "api/cuda/coverage.hh"

#include <array>
#include <vector>

#include "api/cuda/behaviour.hh"
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

/// Functions that exist and return the driver's codes, but cannot do everything that a local driver does.
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

struct kind_column {
  kind how;
  std::string_view title, meaning;
};

constexpr kind_column columns[] = {
    {kind::call, "call", "travels and waits for its reply"},
    {kind::post, "post", "travels, nobody waits; checked on the front-end"},
    {kind::custom, "custom", "hand-written ends, the same wire"},
    {kind::local, "local", "answered by the front-end alone"},
    {kind::refused, "refused",
     "a gap with a reason, below: unknown to cuGetProcAddress, NOT_SUPPORTED when called"},
};

using counts = std::array<int, std::size(columns)>;

void add(counts& n, kind how) { ++n[static_cast<std::size_t>(how)]; }
static_assert(static_cast<std::size_t>(kind::refused) + 1 == std::size(columns),
              "columns stand in the order of kind");

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
  out += " | all |\n|---|---|---|---|---|---|---|\n";
  counts total{}, chapter{};
  std::string_view current = functions().front().chapter;
  for (const function_info& f : functions()) {
    if (f.chapter != current) {
      print_row(out, current, chapter);
      chapter = {};
      current = f.chapter;
    }
    add(chapter, f.about.how);
    add(total, f.about.how);
  }
  print_row(out, current, chapter);
  print_row(out, "**all**", total);
}

std::string_view title_of(kind how) { return columns[static_cast<std::size_t>(how)].title; }

/// The kind, and of a hand-written function without a message of its own how it travels otherwise.
std::string travels_by(const function_info& f) {
  std::string text(title_of(f.about.how));
  if (f.about.how == kind::custom && f.about.travel.request.empty())
    text.append(f.about.travel.via[0].empty() ? ", twin" : ", via ").append(f.about.travel.via[0]);
  return text;
}

void print_row(std::string& out, const function_info& f) {
  out.append("| ").append(std::to_string(static_cast<std::uint32_t>(f.code))).append(" | ").append(f.name);
  out.append(" | ").append(travels_by(f)).append(" | ").append(std::to_string(f.since)).append(" | ");
  const std::string behaviour = behaviour_of(f);
  out.append(behaviour).append(behaviour.empty() ? "|\n" : " |\n");
}

void print_refused(std::string& out) {
  for (const family& refused : families) {
    out.append("- **").append(refused.title).append("**: ").append(refused.reason).append("\n ");
    for (const function_info& f : functions()) {
      if (f.about.how == kind::refused && family_of(f.text) == refused.name) out.append(" ").append(f.name);
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
      "`outboard_coverage` prints this page from `src/api/cuda/*.def`, and a test compares. It lists every "
      "symbol of "
      "cuda.h,\ncudaProfiler.h, cudaGL.h, cudaEGL.h and cudaVDPAU.h, old versions and "
      "per-thread-default-stream "
      "entries too.\n\n";
  for (const kind_column& c : columns)
    out.append("- ").append(c.title).append(": ").append(c.meaning).append("\n");
  out += "\n";
  print_counts(out);
  out += "\n## Refused, and why\n\n";
  print_refused(out);
  out += "\n## There, with limits\n\n";
  print_limits(out);
  out +=
      "\n## By chapter\n\n"
      "An opcode travels, so a function keeps it. A custom function has a message of its own, or travels in "
      "the "
      "requests of\nanother one (via), or does what the function without its suffix does (twin). The CUDA "
      "version is "
      "the one from which\ncuGetProcAddress returns the symbol. The last column says what is done with the "
      "function "
      "besides carrying it out;\n`src/api/describe.hh` explains the words of the tables from which it "
      "follows.\n";
  std::string_view current;
  for (const function_info& f : functions()) {
    if (f.chapter != current)
      out.append("\n### ").append(f.chapter).append(
          "\n\n| opcode | function | kind | CUDA | treated as |\n|---|---|---|---|---|\n");
    current = f.chapter;
    print_row(out, f);
  }
  return out;
}

}  // namespace outboard::api
