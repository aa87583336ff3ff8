//===- GRPCCredentials.cpp - Credentials from PEM files -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCCredentials.h"

#include "Support/PrintableText.h"
#include "Support/RegularFile.h"

using namespace MLBridge;

/// The limit on the size of a PEM file. For comparison, a system's list of
/// authorities has about 200 KiB.
static constexpr std::size_t MaxPEM = std::size_t(16) << 20;

/// Reads the file \p Path. Returns an empty string if \p Path is empty.
static Expected<std::string> readPEM(const std::string &Path,
                                     std::string_view Option) {
  if (Path.empty())
    return std::string();
  const std::string Name = printable(Path) + " (" + std::string(Option) + "=)";
  Expected<std::string> Text =
      readRegularFile(Path, "cannot read " + Name, MaxPEM);
  if (!Text)
    return Text;
  if (Text->find("-----BEGIN ") == std::string::npos)
    return Error(ErrorCode::InvalidArgument,
                 Name + ": expected a PEM file, found no \"-----BEGIN\" in it");
  return Text;
}

namespace {
struct PEM {
  std::string Authorities, Certificate, Key;
};
} // namespace

static Expected<PEM> read(const gRPCCredentials &Files) {
  Expected<std::string> Authorities = readPEM(Files.Authorities, "tls");
  if (!Authorities)
    return Authorities.takeError();
  Expected<std::string> Certificate = readPEM(Files.Certificate, "cert");
  if (!Certificate)
    return Certificate.takeError();
  Expected<std::string> Key = readPEM(Files.Key, "key");
  if (!Key)
    return Key.takeError();
  return PEM{std::move(*Authorities), std::move(*Certificate), std::move(*Key)};
}

Expected<std::shared_ptr<grpc::ChannelCredentials>>
GRPC::makeChannelCredentials(const gRPCCredentials &Files) {
  if (Files.empty())
    return grpc::InsecureChannelCredentials();
  Expected<PEM> Texts = read(Files);
  if (!Texts)
    return Texts.takeError();
  grpc::SslCredentialsOptions Options;
  Options.pem_root_certs = std::move(Texts->Authorities);
  Options.pem_cert_chain = std::move(Texts->Certificate);
  Options.pem_private_key = std::move(Texts->Key);
  return grpc::SslCredentials(Options);
}

Expected<std::shared_ptr<grpc::ServerCredentials>>
GRPC::makeServerCredentials(const gRPCCredentials &Files) {
  if (Files.empty())
    return grpc::InsecureServerCredentials();
  if (Files.Certificate.empty())
    return Error(ErrorCode::InvalidArgument,
                 "a TLS server needs a certificate and its key: cert= and "
                 "key=, in addition to tls=");
  Expected<PEM> Texts = read(Files);
  if (!Texts)
    return Texts.takeError();
  grpc::SslServerCredentialsOptions Options(
      Files.Authorities.empty()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  Options.pem_root_certs = std::move(Texts->Authorities);
  Options.pem_key_cert_pairs.push_back(
      {std::move(Texts->Key), std::move(Texts->Certificate)});
  return grpc::SslServerCredentials(Options);
}
