//===- FeatureViews.cpp - The features of a question, in Python -*- C++ -*-===//
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

void FeatureViews::remake(SessionViews &Views,
                          const ModelServer::Question &Question) {
  Views.Session = Question.Session;
  Views.Memory = Question.Memory;
  Views.Arrays = nb::dict();
  Views.Texts.clear();
  Views.Owner = ownerOf(Question.Memory);
  for (std::size_t I = 0; I < Question.Features.size(); ++I) {
    const TensorView &Tensor = Question.Features[I];
    nb::object Name = toStr(Tensor.Name);
    if (Tensor.Type == ElementType::String) {
      Views.Arrays[Name] = nb::none();
      Views.Texts.push_back({I, Name});
    } else {
      Views.Arrays[Name] = viewArray(Tensor, Views.Owner);
    }
  }
  // Last, so that views that could not be made are not taken for made.
  Views.Layout = Question.Layout;
}

FeatureViews::SessionViews &
FeatureViews::viewsOf(const ModelServer::Question &Question) {
  auto Found =
      std::ranges::find(Sessions, Question.Session, &SessionViews::Session);
  if (Found == Sessions.end()) {
    // A new compiler is the occasion to let go of those that have left: nobody
    // but us holds their memory any more.
    std::erase_if(Sessions, [](const SessionViews &V) {
      return V.Memory.use_count() <= 1;
    });
    Found = Sessions.insert(Sessions.begin(), SessionViews());
  } else if (Found != Sessions.begin()) {
    std::rotate(Sessions.begin(), Found, Found + 1);
    Found = Sessions.begin();
  }
  return *Found;
}

nb::dict FeatureViews::dictFor(const ModelServer::Question &Question) {
  SessionViews &Views = viewsOf(Question);
  ++Views.Questions;
  // Layouts count from 1, so a new session is remade too.
  if (Views.Layout != Question.Layout)
    remake(Views, Question);
  nb::dict Features = nb::steal<nb::dict>(PyDict_Copy(Views.Arrays.ptr()));
  if (!Features.is_valid())
    throw nb::python_error();
  for (const SessionViews::Text &Text : Views.Texts)
    Features[Text.Name] = textObject(Question.Features[Text.Index]);
  return Features;
}

} // namespace MLBridge::Python
