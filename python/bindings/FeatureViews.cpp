//===- FeatureViews.cpp - The features of a request, in Python -*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FeatureViews.h"
#include "ToPython.h"

#include <algorithm>

namespace nb = nanobind;

namespace MLBridge::Python {

FeatureViews::LayoutViews
FeatureViews::make(const ModelServer::Request &Request,
                   const nb::object &Owner) {
  LayoutViews Views;
  for (std::size_t I = 0; I < Request.Features.size(); ++I) {
    const TensorView &Tensor = Request.Features[I];
    nb::object Name = toStr(Tensor.Name);
    if (Tensor.Type == ElementType::String) {
      Views.Arrays[Name] = nb::none();
      Views.Texts.push_back({I, Name});
    } else {
      Views.Arrays[Name] = viewArray(Tensor, Owner);
    }
  }
  return Views;
}

FeatureViews::SessionViews &
FeatureViews::viewsOf(const ModelServer::Request &Request) {
  if (Last && Last->Session == Request.Session)
    return *Last;
  auto Found = Sessions.find(Request.Session);
  if (Found == Sessions.end()) {
    // When a compiler connects, forget the sessions that have ended. A session
    // has ended if no server owns its memory any more.
    std::erase_if(Sessions, [](const auto &Entry) {
      return Entry.second.Memory.use_count() <= 1;
    });
    Found = Sessions.try_emplace(Request.Session).first;
    Found->second.Session = Request.Session;
  }
  Last = &Found->second;
  return *Last;
}

nb::dict FeatureViews::dictFor(const ModelServer::Request &Request) {
  SessionViews &Views = viewsOf(Request);
  // A new SessionViews never matches, because its MemoryId is 0 and a request's
  // IDs start at 1.
  if (Views.MemoryId != Request.Layout.Memory) {
    Views.forgetLayouts();
    Views.Owner = ownerOf(Request.Memory);
    Views.Memory = Request.Memory;
    Views.MemoryId = Request.Layout.Memory;
  }
  auto Found = Views.Layouts.find(Request.Layout.Schema);
  if (Found == Views.Layouts.end()) {
    LayoutViews Made = make(Request, Views.Owner);
    const std::size_t NumFeatures = Request.Features.size() + 1;
    if (Views.NumFeatures + NumFeatures > SessionViews::MaxFeatures)
      Views.forgetLayouts();
    Views.NumFeatures += NumFeatures;
    Found = Views.Layouts.emplace(Request.Layout.Schema, std::move(Made)).first;
  }
  const LayoutViews &Layout = Found->second;
  nb::dict Features = nb::steal<nb::dict>(PyDict_Copy(Layout.Arrays.ptr()));
  if (!Features.is_valid())
    throw nb::python_error();
  for (const LayoutViews::Text &Text : Layout.Texts)
    Features[Text.Name] = textObject(Request.Features[Text.Index]);
  return Features;
}

} // namespace MLBridge::Python
