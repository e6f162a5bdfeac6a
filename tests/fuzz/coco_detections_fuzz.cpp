// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/coco_json.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The bytes as annotations, and as detections in two images of two categories.
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] {
        const auto annotations = evaluation::parse_coco_annotations(text, "annotations.json");
        evaluation::coco_annotations(annotations);
    });
    static const auto known = evaluation::parse_coco_annotations(
        R"({"images": [{"id": 1}, {"id": 2}], "annotations": [],
            "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]})",
        "known.json");
    fuzz::refusing([&] {
        const auto detections = evaluation::parse_coco_detections(text, "detections.json", known);
        evaluation::coco_detections(known, detections);
    });
    return 0;
}
