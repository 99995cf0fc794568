// What the request and the reply of each hand-written function, and of each service, are made of: what their
// lines say (CUSTOM in src/api/cuda, services.def), as types. Compile-time only.
#pragma once

#include "api/cuda/functions.hh"
#include "marshal/cuda/array_bodies.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/graph_bodies.hh"
#include "marshal/cuda/image_bodies.hh"
#include "marshal/cuda/resource_bodies.hh"
#include "marshal/cuda/sharing_bodies.hh"
#include "marshal/data_bodies.hh"
#include "marshal/forms.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::marshal {

/// Of an api::opcode whose line is CUSTOM, or of a service.
template <auto Op>
struct message;

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request_, reply_) \
  template <>                                      \
  struct message<api::opcode::symbol> {            \
    using request = request_;                      \
    using reply = reply_;                          \
  };
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

#define SERVICE(name, number, request_, reply_) \
  template <>                                   \
  struct message<service::name> {               \
    using request = request_;                   \
    using reply = reply_;                       \
  };
#include "marshal/cuda/services.def"
#undef SERVICE

/// Whether these are what the line of this opcode names.
template <class Request, class Reply>
consteval bool carries(api::opcode code) {
  switch (code) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request, reply) \
  case api::opcode::symbol:                      \
    return std::is_same_v<request, Request> && std::is_same_v<reply, Reply>;
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return false;
  }
}

template <class Request, class Reply>
consteval bool carries(service asked) {
  switch (asked) {
#define SERVICE(name, number, request, reply) \
  case service::name:                         \
    return std::is_same_v<request, Request> && std::is_same_v<reply, Reply>;
#include "marshal/cuda/services.def"
#undef SERVICE
  }
  return false;
}

}  // namespace outboard::marshal
