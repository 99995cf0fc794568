// Tables of a session's objects: which native object stands behind each id of the client. Ids are chosen by
// the front-end (dense, per kind); server-born objects get ids of a second space. Owned by what the session
// speaks, and guarded by the session's turn (turn.hh): only the thread that has it may call, but for what
// says otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "api/handles.hh"
#include "marshal/execution.hh"
#include "wire/handle.hh"

namespace outboard::backend {

/// The request that made an object, kept so that the session can be rebuilt elsewhere (design section 5.3).
struct record {
  std::uint64_t ticket = 0;  ///< order of replay
  std::uint32_t opcode = 0;
  std::uint64_t context = 0;  ///< handle it ran in
  std::vector<std::byte> payload;
};

struct server_object {
  enum class life : std::uint8_t { free, alive, tombstone };
  life state = life::free;
  std::uint32_t generation = 0;
  std::int32_t code = 0;  ///< tombstone: what its creation gave
  void* native = nullptr;
  std::shared_ptr<void> extra;  ///< what the hand-written ends keep with the object
  std::vector<record> records;  ///< its creation, then what changed it since
  void* parent = nullptr;       ///< minted: the native graph it dies with
  std::uint64_t marks = 0;      ///< the hand-written ends' own, beside `extra`
};

class handle_tables : public marshal::handle_resolver {
 public:
  /// `dead`: the API's code for a handle that is none of a living object of this kind.
  explicit handle_tables(std::int32_t (*dead)(api::handle_kind)) : dead_(dead) {}

  /// False: the peer broke the rules (the id lives already, is malformed, or leaves a gap that only an attack
  /// leaves).
  [[nodiscard]] bool create(std::uint64_t id, void* native, record made_by,
                            std::shared_ptr<void> extra = nullptr);
  /// A creation that failed: requests that name the id get `code`. Same rules.
  [[nodiscard]] bool fail(std::uint64_t id, std::int32_t code);

  /// nullptr: not alive. `kind` must fit, but a CUkernel is taken for a CUfunction.
  server_object* find(api::handle_kind kind, std::uint64_t id);
  void erase(std::uint64_t id);
  /// The context is gone, and with it the objects of this kind that were made in it: requests that name them
  /// get `code`. A driver that is given one of its own dead streams ends the process.
  void bury(api::handle_kind kind, std::uint64_t context, std::int32_t code);
  /// What the client knows the object by: the id that it chose, else a minted one, which dies with `parent`
  /// (the native graph; null: with the session).
  std::uint64_t name_of(api::handle_kind kind, void* native, void* parent = nullptr);
  /// The id of a server-born object that has one; 0: nobody has asked for it.
  std::uint64_t minted_name_of(api::handle_kind kind, void* native) const;
  /// The native graph that a minted node was named with.
  void* parent_of(std::uint64_t id) const;

  std::int32_t native_of(api::handle_kind kind, std::uint64_t value, void*& native) override;
  std::uint64_t mint(api::handle_kind kind, void* native) override { return name_of(kind, native); }

  /// All living ids of a kind that the client named.
  std::vector<std::uint64_t> ids(api::handle_kind kind) const;
  using visitor = std::function<void(std::uint64_t id, const server_object&)>;
  /// All living objects that the client named, in no order of meaning.
  void each(const visitor& visit) const;
  /// Of creations that failed, and of what died with its context.
  void each_tombstone(const visitor& visit) const;
  /// Adds a request that changed an object to its records, in place of one that said the same with another
  /// value: its last `value` bytes.
  void amend(std::uint64_t id, record changed_by, std::size_t value = 4);
  /// Takes the change out whose request begins with this handle: it was undone.
  void forget_change(std::uint64_t id, std::uint32_t opcode, std::uint64_t subject);
  const server_object* at(std::uint64_t id) const;
  /// Has a server-born object of any kind but this an id?
  bool minted_besides(api::handle_kind kind) const;

  /// In a session that is rebuilt: a server-born object gets the id that it had. False: that is another's.
  [[nodiscard]] bool mint_as(api::handle_kind kind, void* native, std::uint64_t id, void* parent);
  /// In the place of a ticket: something was set that cannot be told again.
  static constexpr std::uint64_t untold = ~0ull;
  /// The latest request that changed what is in a graph or an executable graph; 0: none did.
  void note_change(void* native, std::uint64_t ticket) { changes_[native] = ticket; }
  std::uint64_t last_change(void* native) const {
    const auto found = changes_.find(native);
    return found == changes_.end() ? 0 : found->second;
  }

 private:
  using table = std::vector<server_object>;
  server_object* slot_for(std::uint64_t id, bool minted);
  void each_of(std::size_t kind, server_object::life state, const visitor& visit) const;
  std::uint64_t minted_name(api::handle_kind kind, void* native);
  bool place(std::uint64_t id, server_object made);
  void erase_children(void* graph);

  std::int32_t (*dead_)(api::handle_kind);
  static constexpr std::size_t kinds = static_cast<std::size_t>(api::handle_kind::count);
  std::array<table, kinds> chosen_, minted_;
  std::array<std::vector<std::uint32_t>, kinds> minted_free_;
  std::array<std::unordered_map<void*, std::uint64_t>, kinds> minted_by_native_;
  std::unordered_map<void*, std::vector<std::uint64_t>> children_;  ///< minted ids by native graph
  std::unordered_map<void*, std::uint64_t> changes_;                ///< tickets by native graph
};

/// Made by a request that had given up the turn.
struct late_object {
  std::uint64_t id = 0;
  void* native = nullptr;
  record made_by;
  std::shared_ptr<void> extra;
};

/// They are entered into the tables before the next request of any lane, so that a client that has heard of
/// one can name it.
class late_objects {
 public:
  void add(late_object made);  ///< any thread
  /// With the turn. False: the peer broke the rules; its id lives already.
  [[nodiscard]] bool enter(handle_tables& tables) {
    return !any_.load(std::memory_order_acquire) || enter_all(tables);
  }

 private:
  bool enter_all(handle_tables& tables);

  std::mutex mutex_;  // guards made_
  std::vector<late_object> made_;
  std::atomic<bool> any_{false};
};

}  // namespace outboard::backend
