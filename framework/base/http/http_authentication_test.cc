// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/http_authentication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/http_get.h"
#include "framework/base/http/http_server.h"
#include "framework/base/http/used_proofs.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const std::string kSecret = "a secret of the tests", kOther = "another secret of others";

// RFC 7616, section 3.9.1.
TEST(DigestAnswer, IsThatOfTheRfcsExample) {
  const std::string challenge =
      "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, "
      "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
  const std::string answer = digest_answer(challenge, "GET", "/dir/index.html", "Circle of Life",
                                           "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ");
  EXPECT_THAT(answer, AllOf(StartsWith("Digest username=\"phalanx\", realm=\"http-auth@example.org\", nonce=\"7ypf/"),
                            HasSubstr(", uri=\"/dir/index.html\", response=\""),
                            HasSubstr(", algorithm=SHA-256, qop=auth, nc=00000001, cnonce=\"f2/wE4q74E6z"),
                            HasSubstr(", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"")));
}

TEST(DigestAnswer, OtherChallengesAreRefused) {
  for (const char* challenge :
       {"", "Basic realm=\"x\"", "Digest ", "Digest realm", "Digest realm=\"x",
        "Digest realm=\"x\", nonce=\"1\", qop=\"auth\"", "Digest realm=\"x\", nonce=\"1\", qop=\"auth\", algorithm=MD5",
        "Digest realm=\"x\", nonce=\"\", qop=\"auth\", algorithm=SHA-256",
        "Digest realm=\"x\", nonce=\"1\", algorithm=SHA-256"}) {
    EXPECT_THAT([&] { digest_answer(challenge, "GET", "/", kSecret, "1"); },
                ThrowsMessage<Error>(HasSubstr("another authentication")))
        << challenge;
  }
}

// The value that docs/watching.md computes with openssl.
TEST(HttpToken, IsAKeyedHash) {
  EXPECT_EQ(http_token(kSecret), "cebb69f565be93dbdff0fafbb7d7aaf3fcba69ea5330459ea94105fa2b2bf9ee");
  EXPECT_NE(http_token(kSecret), http_token(kOther));
  EXPECT_THAT(http_token(kSecret), Not(HasSubstr(kSecret)));
}

TEST(UsedProofs, KnowsAProofInAnyNotation) {
  const std::string opaque(64, 'a'), proof(64, 'b'), upper(64, 'B'), other(64, 'c');
  UsedProofs proofs(std::chrono::seconds(1000), opaque);
  EXPECT_TRUE(proofs.are_new("Digest response=\"" + proof + "\", opaque=\"" + opaque + "\""));
  EXPECT_FALSE(proofs.are_new("Digest response=" + upper));
  EXPECT_FALSE(proofs.are_new("Digest response=\"" + other + "\", response =\t" + proof));
  EXPECT_TRUE(proofs.are_new("Digest response=\"" + other + "\", opaque=\"" + opaque + "\""));
  EXPECT_TRUE(proofs.are_new("Digest uri=\"/" + proof + "\", response=\"" + std::string(64, '1') + "\""));
}

TEST(UsedProofs, AreForgottenAfterTheTime) {
  UsedProofs proofs(std::chrono::seconds(0), "");
  const std::string answer = "Digest response=" + std::string(64, 'b');
  EXPECT_TRUE(proofs.are_new(answer));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(proofs.are_new(answer));
}

class HttpAuthentication : public ::testing::Test {
 protected:
  std::string get(const std::optional<std::string>& secret, const std::string& path = "/page") const {
    return http_get(parse_http_address("http://127.0.0.1:" + std::to_string(server_.port()) + path), 30, secret);
  }

  // Returns the answer to a request with this header.
  std::string ask(const std::string& header) const {
    const Descriptor socket = connect_to("127.0.0.1:" + std::to_string(server_.port()), 30);
    const std::string request = "GET /page HTTP/1.1\r\nHost: here\r\nConnection: close\r\n" + header + "\r\n";
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      pollfd file{.fd = socket.get(), .events = POLLIN, .revents = 0};
      ::poll(&file, 1, 100);
      char piece[4096];
      const ssize_t count = ::recv(socket.get(), piece, sizeof(piece), 0);
      if (count > 0) answer.append(piece, static_cast<std::size_t>(count));
      if (count == 0) break;
    }
    return answer;
  }

  std::string challenge() const {
    const std::string answer = ask(""), name = "WWW-Authenticate: ";
    const auto begin = answer.find(name) + name.size();
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
  }

  HttpServer server_{"127.0.0.1", 0, [](const HttpRequest&) { return HttpResponse{.body = "the page"}; }, kSecret};
};

TEST_F(HttpAuthentication, AClientWithTheSecretGetsThePage) {
  EXPECT_EQ(get(kSecret), "the page");
  EXPECT_EQ(get(kSecret, "/page?a=1&b=2"), "the page");
}

TEST_F(HttpAuthentication, OthersGetNothing) {
  ::testing::internal::CaptureStderr();
  EXPECT_THAT([&] { get({}); }, ThrowsMessage<Error>(HasSubstr("asks for the job's secret; set PHALANX_JOB_SECRET")));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT([&] { get(kOther); }, ThrowsMessage<Error>(HasSubstr("the server has another secret")));
  }
  const std::string log = ::testing::internal::GetCapturedStderr(), words = "it does not know the job's secret";
  EXPECT_THAT(log, AllOf(HasSubstr(words), Not(HasSubstr(kSecret))));
  EXPECT_EQ(log.find(words), log.rfind(words)) << "one line: " << log;
}

TEST_F(HttpAuthentication, MalformedProofsGetNothing) {
  for (const char* header :
       {"Authorization: \r\n", "Authorization: Digest\r\n", "Authorization: Digest username=\"phalanx\r\n",
        "Authorization: Digest username=\"phalanx\", nonce=\"0\", response=\"0\"\r\n", "Authorization: Bearer \r\n",
        "Authorization: Basic cGhhbGFueDphIHNlY3JldCBvZiB0aGUgdGVzdHM=\r\n"}) {
    EXPECT_THAT(ask(header), AllOf(StartsWith("HTTP/1.1 401 "), Not(HasSubstr("the page")))) << header;
  }
}

TEST_F(HttpAuthentication, AProofIsGoodForOneRequest) {
  const std::string header =
      "Authorization: " + digest_answer(challenge(), "GET", "/page", kSecret, "0123456789abcdef") + "\r\n";
  EXPECT_THAT(ask(header), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("the page")));
  EXPECT_THAT(ask(header), AllOf(StartsWith("HTTP/1.1 401 "), Not(HasSubstr("the page")))) << "replayed";
}

TEST_F(HttpAuthentication, AProofIsGoodForOneRequestEvenIfOthersAreChallenged) {
  std::string answer = digest_answer(challenge(), "GET", "/page", kSecret, "0123456789abcdef");
  EXPECT_THAT(ask("Authorization: " + answer + "\r\n"), StartsWith("HTTP/1.1 200 "));
  for (int i = 0; i < 20; ++i) challenge();
  EXPECT_THAT(ask("Authorization: " + answer + "\r\n"), StartsWith("HTTP/1.1 401 "));
  const auto proof = answer.find("response=\"") + std::string_view("response=\"").size();
  answer.insert(proof, "\\");
  EXPECT_THAT(ask("Authorization: " + answer + "\r\n"), StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(get(kSecret), "the page");
}

TEST_F(HttpAuthentication, TheTokenIsAcceptedToo) {
  EXPECT_THAT(ask("Authorization: Bearer " + http_token(kSecret) + "\r\n"), HasSubstr("the page"));
  EXPECT_THAT(ask("Authorization: Bearer " + http_token(kOther) + "\r\n"), StartsWith("HTTP/1.1 401 "));
}

}  // namespace
}  // namespace phalanx
