// A platform of OpenCL in this process for fuzzing, stricter than any real one: where a real one would follow
// a wrong pointer or leave an object's bounds, it ends the process, so that a worker which lets this through
// is detected. It computes nothing; commands touch all their bytes, some time after they were enqueued. One
// lock; its functions must not be called from its callbacks, as with PoCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/opencl/table.hh"

namespace outboard::fuzz {

enum class kind : std::uint8_t { platform, device, context, queue, memory, program, kernel, event, sampler };

struct thing {
  virtual ~thing() = default;
  explicit thing(kind k) : what(k) {}
  const kind what;
  int references = 1;
};

template <kind K>
struct typed : thing {
  static constexpr kind its = K;
  typed() : thing(K) {}
};

struct platform : typed<kind::platform> {};
struct device : typed<kind::device> {};
struct context : typed<kind::context> {};
struct sampler : typed<kind::sampler> {};

struct event : typed<kind::event> {
  ~event() override;  ///< its remaining callbacks run, with a failure
  cl_int status = CL_QUEUED;
  cl_command_queue in = nullptr;  ///< null: the program's own
  bool seen = false;              ///< asked for since it was given
  struct callback {
    cl_int at;
    void(CL_CALLBACK* tell)(cl_event, cl_int, void*);
    void* data;
  };
  std::vector<callback> callbacks;
};

struct command {
  std::vector<std::shared_ptr<event>> waits;
  std::function<void()> work;
  std::shared_ptr<event> done;
};

struct queue : typed<kind::queue> {
  cl_context in = nullptr;
  cl_command_queue_properties bits = 0;
  std::deque<command> waiting;
};

struct memory : typed<kind::memory> {
  ~memory() override;
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  std::size_t size = 0;
  std::byte* bytes = nullptr;
  std::unique_ptr<std::byte[]> own;
  std::shared_ptr<memory> parent;
  cl_image_desc shape{};
  std::size_t element = 0, row = 0, slice = 0;
  struct callback {
    void(CL_CALLBACK* tell)(cl_mem, void*);
    void* data;
  };
  std::vector<callback> at_end;
};

struct program : typed<kind::program> {
  std::vector<std::byte> text;
  unsigned builds = 0;  ///< its binary is longer after each
  bool built = false, failed = false;
};

enum class takes : std::uint8_t { bytes, memory, local, image, sampler, queue };
struct parameter {
  takes what;
  std::size_t size;
  const char* type;
};
inline constexpr parameter parameters[] = {
    {takes::memory, 8, "int*"},  {takes::sampler, 8, "sampler_t"}, {takes::sampler, 8, "hidden"},
    {takes::bytes, 8, "long"},   {takes::bytes, 8, "pair"},        {takes::bytes, 4, "int"},
    {takes::local, 8, "float*"}, {takes::image, 8, "image2d_t"},   {takes::queue, 8, "queue_t"},
};

struct kernel : typed<kind::kernel> {
  bool tells = true;  ///< what its parameters are
  struct value {
    bool set = false;
    std::weak_ptr<memory> buffer;
    std::uint64_t address = 0;
  };
  std::map<cl_uint, value> values;
};

/// The platform's whole state. Members are guarded by the lock.
struct world {
  std::unordered_map<void*, std::shared_ptr<thing>> all;
  std::map<std::uint64_t, std::uint64_t> shared;  ///< blocks of shared memory: address, size
  std::vector<std::pair<std::uint64_t, std::uint64_t>> shared_once;
  std::size_t total = 0;  ///< bytes of buffers
  std::shared_ptr<platform> the_platform;
  std::shared_ptr<device> the_device;
};
world& all();

/// Holds the lock during one function.
class inside {
 public:
  inside();
  ~inside();
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
};

/// The object behind a pointer that is not null; anything else ends the process.
std::shared_ptr<thing> living(const void* at, kind k);
template <class T, class H>
std::shared_ptr<T> the(H handle) {
  return std::static_pointer_cast<T>(living(handle, T::its));
}
template <class H, class T>
H add(std::shared_ptr<T> made) {
  auto* const at = made.get();
  all().all.emplace(at, std::move(made));
  return reinterpret_cast<H>(at);
}
cl_int drop(void* at, kind k);

/// Checks that the bytes lie in one block of shared memory; if not, ends the process.
void must_be_shared(std::uint64_t address, std::size_t size);
/// Reads (or reads and writes) each byte.
void touch(const void* at, std::size_t size);
void change(void* at, std::size_t size, std::byte with);

/// Enqueues a command and puts its event into `wanted`. Returns the platform's error for a wrong wait list.
cl_int give(cl_command_queue to, cl_uint count, const cl_event* waits, cl_event* wanted,
            std::function<void()> work);
/// Carries out all commands that can run. With `patient`, the program's user events that are still unset
/// count as failed.
void carry_out(bool patient);
void reach(event& of, cl_int status);

/// The address of the n-th block of shared memory since the beginning.
std::uint64_t shared_address(std::uint64_t n);

/// Copies an answer to the caller's memory, as query functions do.
inline cl_int give_bytes(const void* answer, std::size_t size, std::size_t room, void* to,
                         std::size_t* wanted) {
  if (to && room < size) return CL_INVALID_VALUE;
  if (to && size) std::memcpy(to, answer, size);
  if (wanted) *wanted = size;
  return CL_SUCCESS;
}
template <class T>
cl_int give_value(const T& value, std::size_t room, void* to, std::size_t* wanted) {
  return give_bytes(&value, sizeof value, room, to, wanted);
}
inline cl_int give_text(std::string_view text, std::size_t room, void* to, std::size_t* wanted) {
  return give_bytes(std::string(text).c_str(), text.size() + 1, room, to, wanted);
}

template <class H>
H none(cl_int* code, cl_int why) {
  if (code) *code = why;
  return nullptr;
}
template <class H, class T>
H made(std::shared_ptr<T> object, cl_int* code) {
  if (code) *code = CL_SUCCESS;
  return add<H>(std::move(object));
}

api::opencl::function_table platform_table();
void add_commands(api::opencl::function_table& table);
void add_programs(api::opencl::function_table& table);
/// Waits until all commands are carried out or have failed.
void finish_all();
/// Resets everything, as the end of a worker's process would.
void begin_anew();

}  // namespace outboard::fuzz
