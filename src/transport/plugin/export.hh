// Makes a plug-in of a transport written in C++: the counterpart of plugin.cc. The whole source of a plug-in
// is
//   OUTBOARD_EXPORT_TRANSPORT("scheme", make_it())
// in one file, at namespace scope. Any exception becomes an error or a broken connection.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "transport/plugin/abi.h"
#include "transport/transport.hh"

namespace outboard::transport::plugin::exported {

inline deadline to_deadline(std::int64_t until) {
  return until == OUTBOARD_NO_DEADLINE ? no_deadline : deadline(std::chrono::nanoseconds(until));
}

inline std::int32_t fill(outboard_error* out, const outboard::error& e) {
  out->next = static_cast<std::int32_t>(e.next);
  std::size_t n = std::min(e.message.size(), sizeof out->message - 1);
  std::memcpy(out->message, e.message.data(), n);
  out->message[n] = '\0';
  return -1;
}

inline std::size_t copy_text(const std::string& from, char* text, std::size_t size) {
  if (size > 0) {
    std::size_t n = std::min(from.size(), size - 1);
    std::memcpy(text, from.data(), n);
    text[n] = '\0';
  }
  return from.size();
}

inline connection& as_connection(void* p) { return *static_cast<connection*>(p); }
inline listener& as_listener(void* p) { return *static_cast<listener*>(p); }
inline transport& as_transport(void* p) { return *static_cast<transport*>(p); }

/// Runs a function that returns a result<> and passes its value to `keep`.
template <class Call, class Keep>
std::int32_t guard(outboard_error* error, Call call, Keep keep) {
  try {
    auto r = call();
    if (!r) return fill(error, r.error());
    keep(r);
    return 0;
  } catch (const std::exception& e) {
    return fill(error, failure(std::string("exception in the transport: ") + e.what()));
  }
}

/// guard() for a result<unique_ptr<T>>: ownership passes to the caller as a pointer.
template <class Call>
std::int32_t guard_made(outboard_error* error, void** made, Call call) {
  return guard(error, call, [&](auto& r) { *made = r->release(); });
}

template <class Call>
std::int32_t guard_io(std::uint64_t* bytes, Call call) {
  *bytes = 0;
  try {
    io_result r = call();
    *bytes = r.bytes;
    return static_cast<std::int32_t>(r.status);
  } catch (const std::exception&) {
    return OUTBOARD_IO_BROKEN;
  }
}

template <class Text>
std::size_t guard_text(char* text, std::size_t size, Text get) {
  try {
    return copy_text(get(), text, size);
  } catch (const std::exception&) {
    return copy_text("", text, size);
  }
}

inline void add_connection(outboard_transport_v1& t) {
  t.connection_destroy = [](void* c) { delete &as_connection(c); };
  t.connection_what = [](void* c, outboard_capabilities* out) {
    const capabilities& w = as_connection(c).what();
    *out = {w.same_host, w.passes_descriptors, w.detachable, w.peer_identity, {}, w.preferred_chunk};
  };
  t.connection_send = [](void* c, const iovec* parts, std::size_t n, std::int64_t until,
                         std::uint64_t* bytes) {
    return guard_io(bytes, [&] { return as_connection(c).send({parts, n}, to_deadline(until)); });
  };
  t.connection_receive = [](void* c, void* into, std::size_t size, std::int64_t until, std::uint64_t* bytes) {
    return guard_io(bytes, [&] {
      return as_connection(c).receive({static_cast<std::byte*>(into), size}, to_deadline(until));
    });
  };
  t.connection_wait_readable = [](void* c, std::int64_t until) {
    std::uint64_t none;
    return guard_io(&none, [&] { return io_result{as_connection(c).wait_readable(to_deadline(until)), 0}; });
  };
  t.connection_interrupt = [](void* c) { as_connection(c).interrupt(); };
  t.connection_peer_gone = [](void* c) { return as_connection(c).peer_gone() ? 1 : 0; };
  t.connection_shutdown = [](void* c) { as_connection(c).shutdown(); };
  t.connection_set_spin = [](void* c, std::int64_t ns) {
    as_connection(c).set_spin(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds(ns)));
  };
  t.connection_send_descriptor = [](void* c, int fd, outboard_error* e) {
    return guard(
        e, [&] { return as_connection(c).send_descriptor(fd); }, [](auto&) {});
  };
  t.connection_receive_descriptor = [](void* c, std::int64_t until, int* fd, outboard_error* e) {
    return guard(
        e, [&] { return as_connection(c).receive_descriptor(to_deadline(until)); },
        [&](auto& r) { *fd = r->release(); });
  };
  t.connection_detach = [](void* c, int* fd, outboard_error* e) {
    return guard(
        e, [&] { return as_connection(c).detach(); }, [&](auto& r) { *fd = r->release(); });
  };
  t.connection_peer = [](void* c, outboard_peer* out, outboard_error* e) {
    return guard(
        e, [&] { return as_connection(c).peer(); },
        [&](auto& r) {
          *out = {r->user, r->group, r->process};
        });
  };
  t.connection_describe = [](void* c, char* text, std::size_t size) {
    return guard_text(text, size, [&] { return as_connection(c).describe(); });
  };
}

inline void add_listener(outboard_transport_v1& t) {
  t.listener_destroy = [](void* l) { delete &as_listener(l); };
  t.listener_accept = [](void* l, std::int64_t until, void** made, outboard_error* e) {
    return guard_made(e, made, [&] { return as_listener(l).accept(to_deadline(until)); });
  };
  t.listener_interrupt = [](void* l) { as_listener(l).interrupt(); };
  t.listener_poll_descriptor = [](void* l) { return as_listener(l).poll_descriptor(); };
  t.listener_url = [](void* l, char* text, std::size_t size) {
    return guard_text(text, size, [&] { return as_listener(l).url(); });
  };
}

inline void add_transport(outboard_transport_v1& t) {
  t.destroy = [](void* self) { delete &as_transport(self); };
  t.connect = [](void* self, const char* address, std::size_t n, std::int64_t until, void** made,
                 outboard_error* e) {
    return guard_made(e, made, [&] { return as_transport(self).connect({address, n}, to_deadline(until)); });
  };
  t.listen = [](void* self, const char* address, std::size_t n, const outboard_listen_options* o, void** made,
                outboard_error* e) {
    return guard_made(e, made, [&] {
      return as_transport(self).listen({address, n}, {o->backlog, o->allow_foreign_hosts != 0});
    });
  };
  // The descriptor becomes ours only on success, so work on a copy.
  t.attach = [](void* self, int fd, void** made, outboard_error* e) {
    return guard_made(e, made, [&] { return as_transport(self).attach(unique_fd(::dup(fd))); }) == 0
               ? (::close(fd), 0)
               : -1;
  };
  t.adopt_listener = [](void* self, int fd, void** made, outboard_error* e) {
    return guard_made(e, made, [&] { return as_transport(self).adopt_listener(unique_fd(::dup(fd))); }) == 0
               ? (::close(fd), 0)
               : -1;
  };
}

/// The table without create().
inline outboard_transport_v1 make_table(const char* scheme) {
  outboard_transport_v1 t{};
  t.version = 1;
  t.size = sizeof t;
  t.scheme = scheme;
  add_transport(t);
  add_connection(t);
  add_listener(t);
  return t;
}

}  // namespace outboard::transport::plugin::exported

#define OUTBOARD_EXPORT_TRANSPORT(scheme, make)                                             \
  extern "C" const void* outboard_transport_entry(uint32_t version) {                       \
    namespace exported = ::outboard::transport::plugin::exported;                           \
    static const outboard_transport_v1 table = [] {                                         \
      outboard_transport_v1 t = exported::make_table(scheme);                               \
      t.create = [](void** self, outboard_error* e) {                                       \
        using made = ::outboard::result<std::unique_ptr<::outboard::transport::transport>>; \
        return exported::guard_made(e, self, [] { return made(make); });                    \
      };                                                                                    \
      return t;                                                                             \
    }();                                                                                    \
    return version == 1 ? &table : nullptr;                                                 \
  }
