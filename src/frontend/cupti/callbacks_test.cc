#include "frontend/cupti/callbacks.hh"

#include <gtest/gtest.h>

#include <string>

namespace outboard::frontend::cupti {
namespace {

void CUPTIAPI count(void* data, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {
  ++*static_cast<int*>(data);
}

TEST(cupti_callbacks, have_one_subscriber_that_is_told_of_what_it_wants) {
  callbacks all;
  int calls = 0;
  CUpti_SubscriberHandle own = nullptr, other = nullptr;
  EXPECT_EQ(all.enable_domain(true, own, CUPTI_CB_DOMAIN_DRIVER_API), CUPTI_ERROR_INVALID_PARAMETER);
  ASSERT_EQ(all.subscribe(&own, count, &calls), CUPTI_SUCCESS);
  EXPECT_EQ(all.subscribe(&other, count, &calls), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_FALSE(all.any());
  ASSERT_EQ(all.enable(true, own, CUPTI_CB_DOMAIN_RUNTIME_API, 211), CUPTI_SUCCESS);
  EXPECT_TRUE(all.any());
  EXPECT_TRUE(all.wants(true, 211));
  EXPECT_FALSE(all.wants(false, 211));
  std::uint32_t on = 0;
  EXPECT_EQ(all.state(&on, own, CUPTI_CB_DOMAIN_RUNTIME_API, 211), CUPTI_SUCCESS);
  EXPECT_EQ(on, 1u);
  all.tell(true, 211, CUpti_CallbackData{});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(all.enable(true, own, CUPTI_CB_DOMAIN_RUNTIME_API, 1u << 20), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(all.enable_domain(true, own, CUPTI_CB_DOMAIN_SIZE), CUPTI_ERROR_INVALID_PARAMETER);
  all.tell_resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, nullptr, nullptr);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(all.enable_domain(true, own, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
  all.tell_resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, nullptr, nullptr);
  EXPECT_EQ(calls, 2);
  all.tell_wait(CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, nullptr, nullptr);
  EXPECT_EQ(calls, 2);
  ASSERT_EQ(all.enable(true, own, CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED),
            CUPTI_SUCCESS);
  all.tell_wait(CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, nullptr, nullptr);
  all.tell_wait(CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED, nullptr, nullptr);
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(all.unsubscribe(own), CUPTI_SUCCESS);
  EXPECT_FALSE(all.any());
  all.tell(true, 211, CUpti_CallbackData{});
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(all.unsubscribe(own), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(all.subscribe(&other, count, &calls), CUPTI_SUCCESS);
}

void CUPTIAPI keep_message(void* data, CUpti_CallbackDomain, CUpti_CallbackId, const void* about) {
  *static_cast<std::string*>(data) = static_cast<const CUpti_StateData*>(about)->notification.message;
}

TEST(cupti_callbacks, of_nvtx_come_by_the_functions_name) {
  callbacks all;
  int calls = 0;
  CUpti_SubscriberHandle own = nullptr;
  ASSERT_EQ(all.subscribe(&own, count, &calls), CUPTI_SUCCESS);
  ASSERT_EQ(all.enable(true, own, CUPTI_CB_DOMAIN_NVTX, CUPTI_CBID_NVTX_nvtxRangePop), CUPTI_SUCCESS);
  EXPECT_FALSE(all.any());  // nobody looks at calls of the driver for these
  EXPECT_TRUE(all.wants_nvtx());
  all.tell_nvtx({"nvtxRangePop", nullptr, nullptr});
  all.tell_nvtx({"nvtxRangePushA", nullptr, nullptr});
  all.tell_nvtx({"nvtxInitialize", nullptr, nullptr});  // CUPTI has no number for it
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(all.unsubscribe(own), CUPTI_SUCCESS);
  EXPECT_FALSE(all.wants_nvtx());
}

TEST(cupti_callbacks, of_states_come_without_anybody_looking_at_calls) {
  callbacks all;
  std::string message;
  CUpti_SubscriberHandle own = nullptr;
  ASSERT_EQ(all.subscribe(&own, keep_message, &message), CUPTI_SUCCESS);
  all.tell_state(CUPTI_CBID_STATE_FATAL_ERROR, CUPTI_ERROR_NOT_SUPPORTED, "unasked");
  EXPECT_EQ(message, "");
  ASSERT_EQ(all.enable_domain(true, own, CUPTI_CB_DOMAIN_STATE), CUPTI_SUCCESS);
  EXPECT_FALSE(all.any());
  all.tell_state(CUPTI_CBID_STATE_FATAL_ERROR, CUPTI_ERROR_NOT_SUPPORTED, "no records");
  EXPECT_EQ(message, "no records");
}

}  // namespace
}  // namespace outboard::frontend::cupti
