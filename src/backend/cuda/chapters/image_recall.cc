// A module image that another session of the same identity has loaded, in the place of an upload.
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/image_bodies.hh"

namespace outboard::backend::ends {

outcome image_recall(call& c, const marshal::recall_body& body) {
  marshal::recall_reply reply;
  image_keeper& images = c.session.images();
  if (body.size != 0 && images.is_open()) {
    c.give_up_turn();  // reading and hashing take as long as a load does
    auto image = images.find(body.name, body.proof);
    c.own.keeps_next = !image;
    if (image && image->size() == body.size && c.session.reserve_upload(body.size)) {
      c.take_upload();
      c.own.upload = std::move(*image);
      reply.found = true;
    }
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend::ends
