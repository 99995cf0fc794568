// Names that newer C libraries brought or moved, bound to what a glibc of 2.31 has, so that the front-end
// libraries load in older containers and conda environments. Linked into them only, and hidden there: code
// that was compiled against the newer names (ours, libstdc++, libgcc) finds these first. What the libraries
// ask for is held by tests/shim.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// glibc 2.34 moved these from libpthread and libdl into libc and gave them a new version; the old one stays
// for ever.
#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#define OLDER_OF(name, version)                                                                             \
  asm(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ": jmp *older_" #name \
      "@GOTPCREL(%rip)\n.size " #name ",.-" #name "\n.symver older_" #name "," #name "@" version "\n")
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#define OLDER_OF(name, version)                                                                             \
  asm(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name                       \
      ": adrp x16, :got:older_" #name "\n ldr x16, [x16, :got_lo12:older_" #name "]\n br x16\n.size " #name \
      ",.-" #name "\n.symver older_" #name "," #name "@" version "\n")
#elif defined(__arm__)
#define FIRST_VERSION "GLIBC_2.4"
#define OLDER_OF(name, version)                                                                        \
  asm(".text\n.arm\n.balign 4\n.globl " #name "\n.hidden " #name "\n.type " #name ",%function\n" #name \
      ": ldr ip, 2f\n1: ldr pc, [pc, ip]\n2: .word older_" #name "(GOT_PREL)+(.-(1b+8))\n.size " #name \
      ",.-" #name "\n.symver older_" #name "," #name "@" version "\n")
#else
#error "which version of glibc was this machine's first?"
#endif
#define OLDER(name) OLDER_OF(name, FIRST_VERSION)

OLDER(dlopen);
OLDER(dlclose);
OLDER(dladdr);
OLDER(dlsym);
OLDER(dlerror);
OLDER(pthread_create);
OLDER(pthread_join);
OLDER(pthread_detach);
OLDER(pthread_sigmask);
OLDER(pthread_once);
OLDER(pthread_key_create);
OLDER(__pthread_key_create);
OLDER(pthread_key_delete);
OLDER(pthread_getspecific);
OLDER(pthread_setspecific);
OLDER(pthread_mutex_trylock);
OLDER(pthread_rwlock_init);
OLDER(pthread_rwlock_destroy);
OLDER(pthread_rwlock_rdlock);
OLDER(pthread_rwlock_wrlock);
OLDER(pthread_rwlock_unlock);
OLDER_OF(pthread_cond_clockwait, "GLIBC_2.30");

/// libstdc++ skips atomic operations while this is not 0; a library cannot know, so threads there are
/// (glibc 2.32).
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.33; the kernel fills the same struct.
#if !defined(SYS_newfstatat)
#define SYS_newfstatat SYS_fstatat64
#undef SYS_fstat
#define SYS_fstat SYS_fstat64
#endif
HIDDEN int stat(const char* path, struct stat* out) {
  return static_cast<int>(::syscall(SYS_newfstatat, AT_FDCWD, path, out, 0));
}
HIDDEN int lstat(const char* path, struct stat* out) {
  return static_cast<int>(::syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW));
}
HIDDEN int fstat(int descriptor, struct stat* out) {
  return static_cast<int>(::syscall(SYS_fstat, descriptor, out));
}

/// glibc 2.36; asked for by std::random_device.
HIDDEN std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

namespace {

struct wanted {
  std::uintptr_t address = 0;
  dl_find_object* found = nullptr;
};

int look_at(dl_phdr_info* object, std::size_t, void* argument) {
  auto& want = *static_cast<wanted*>(argument);
  std::uintptr_t low = UINTPTR_MAX, high = 0, table = 0;
  bool inside = false;
  for (int n = 0; n < object->dlpi_phnum; ++n) {
    const ElfW(Phdr)& part = object->dlpi_phdr[n];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
    if (part.p_type == PT_GNU_EH_FRAME) table = begin;
    if (part.p_type != PT_LOAD) continue;
    inside = inside || (want.address >= begin && want.address < end);
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  if (!inside || table == 0) return 0;
  *want.found = {};
  want.found->dlfo_map_start = reinterpret_cast<void*>(low);
  want.found->dlfo_map_end = reinterpret_cast<void*>(high);
  want.found->dlfo_eh_frame = reinterpret_cast<void*>(table);
  return 1;
}

}  // namespace

/// glibc 2.35; the unwinder's way to the table of the object that holds a program counter. Before, it walked
/// the loaded objects, as this does. Signature and meaning: glibc manual, "Dynamic Linker Introspection".
HIDDEN int _dl_find_object(void* address, dl_find_object* result) {
  wanted want{reinterpret_cast<std::uintptr_t>(address), result};
  return ::dl_iterate_phdr(look_at, &want) == 1 ? 0 : -1;
}
