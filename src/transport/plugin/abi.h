/* The C interface between Outboard and a transport in a shared object.
 *
 * The object exports one function, outboard_transport_entry(version), which returns its table for that
 * version of this header, or NULL when it does not know the version. Outboard asks first for the newest
 * version that it knows. A table of version 1 never changes; additions get a new version and a new struct.
 *
 * transport/transport.hh says what the functions mean, which thread may call them and what they must not do.
 * This header says only how arguments are passed:
 *  - transport, connection and listener are the plug-in's own pointers; *_destroy frees them.
 *  - Strings have a length and no NUL unless stated. Texts for Outboard go into Outboard's buffer.
 *  - A deadline is CLOCK_MONOTONIC in nanoseconds. OUTBOARD_NO_DEADLINE waits indefinitely, the past polls.
 *  - Functions that return int32_t and take an outboard_error return 0 on success, else -1 and fill the
 * error.
 *  - Outputs are written on success only.
 *  - No C++ exception may leave a function. No signal handler may be installed.
 *  - Descriptors are close-on-exec.
 *  - Outboard never unloads the object.
 */
#ifndef OUTBOARD_TRANSPORT_PLUGIN_ABI_H
#define OUTBOARD_TRANSPORT_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOARD_TRANSPORT_VERSION 1u
#define OUTBOARD_NO_DEADLINE INT64_MAX

/* enum io */
enum {
  OUTBOARD_IO_DONE = 0,
  OUTBOARD_IO_CLOSED,
  OUTBOARD_IO_BROKEN,
  OUTBOARD_IO_TIMED_OUT,
  OUTBOARD_IO_INTERRUPTED
};

/* enum action */
enum {
  OUTBOARD_ACTION_FAIL = 0,
  OUTBOARD_ACTION_RETRY,
  OUTBOARD_ACTION_RECONNECT,
  OUTBOARD_ACTION_FALL_BACK
};

struct outboard_error {
  int32_t next;      /* OUTBOARD_ACTION_... */
  char message[508]; /* one sentence, NUL-terminated */
};

/* struct capabilities; flags are 0 or 1 */
struct outboard_capabilities {
  uint8_t same_host, passes_descriptors, detachable, peer_identity;
  uint8_t reserved[4]; /* 0 */
  uint64_t preferred_chunk;
};

struct outboard_peer {
  uint32_t user, group;
  int32_t process;
};

struct outboard_listen_options {
  int32_t backlog;
  int32_t allow_foreign_hosts;
};

struct outboard_transport_v1 {
  uint32_t version;   /* 1 */
  uint32_t size;      /* sizeof(struct outboard_transport_v1) */
  const char* scheme; /* NUL-terminated, of static storage duration: [a-z][a-z0-9+-]{0,15} */

  int32_t (*create)(void** transport, struct outboard_error* error);
  void (*destroy)(void* transport); /* connections and listeners may outlive it */
  int32_t (*connect)(void* transport, const char* address, size_t address_size, int64_t until,
                     void** connection, struct outboard_error* error);
  int32_t (*listen)(void* transport, const char* address, size_t address_size,
                    const struct outboard_listen_options* options, void** listener,
                    struct outboard_error* error);
  /* Takes over fd on success only. */
  int32_t (*attach)(void* transport, int fd, void** connection, struct outboard_error* error);
  int32_t (*adopt_listener)(void* transport, int fd, void** listener, struct outboard_error* error);

  void (*connection_destroy)(void* connection);
  void (*connection_what)(void* connection, struct outboard_capabilities* what);
  /* These three return OUTBOARD_IO_...; *bytes is always written. */
  int32_t (*connection_send)(void* connection, const struct iovec* parts, size_t count, int64_t until,
                             uint64_t* bytes);
  int32_t (*connection_receive)(void* connection, void* into, size_t size, int64_t until, uint64_t* bytes);
  int32_t (*connection_wait_readable)(void* connection, int64_t until);
  void (*connection_interrupt)(void* connection);
  int32_t (*connection_peer_gone)(void* connection); /* 0 or 1 */
  void (*connection_shutdown)(void* connection);
  void (*connection_set_spin)(void* connection, int64_t nanoseconds);
  int32_t (*connection_send_descriptor)(void* connection, int fd, struct outboard_error* error);
  int32_t (*connection_receive_descriptor)(void* connection, int64_t until, int* fd,
                                           struct outboard_error* error);
  int32_t (*connection_detach)(void* connection, int* fd, struct outboard_error* error);
  int32_t (*connection_peer)(void* connection, struct outboard_peer* peer, struct outboard_error* error);
  /* Like snprintf: writes at most size bytes with a NUL, returns the length of the whole text. */
  size_t (*connection_describe)(void* connection, char* text, size_t size);

  void (*listener_destroy)(void* listener);
  int32_t (*listener_accept)(void* listener, int64_t until, void** connection, struct outboard_error* error);
  void (*listener_interrupt)(void* listener);
  int (*listener_poll_descriptor)(void* listener); /* or -1 */
  size_t (*listener_url)(void* listener, char* text, size_t size);
};

/* Exported by the shared object. The result is a struct outboard_transport_v<version>. */
#define OUTBOARD_TRANSPORT_ENTRY "outboard_transport_entry"
typedef const void* (*outboard_transport_entry_function)(uint32_t version);
__attribute__((visibility("default"))) const void* outboard_transport_entry(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
