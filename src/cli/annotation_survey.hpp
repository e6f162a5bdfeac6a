// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "picture_survey.hpp"

/// What `data check` does with pictures that have the annotations of Pascal VOC or COCO.
namespace hpcai::cli {

struct AnnotationSource {
    std::string split;     // of Pascal VOC, a list in ImageSets/Main; empty: train
    std::string pictures;  // of COCO, the folder of file_name; empty: the file's own
};

/// By names alone: a folder with ImageSets/Main and Annotations.
bool is_voc(const std::string& path);
/// *.json
bool is_coco(const std::string& path);

/// Reads every annotation, of the split alone, and decodes the pictures. Throws Error(data) for the
/// first annotation that is not sound, naming its file, or after printing when pictures are bad.
ExitCode check_annotations(const SurveyOptions& options, const AnnotationSource& source,
                           std::ostream& out);

}  // namespace hpcai::cli
