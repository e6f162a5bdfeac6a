// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/search/edits.hpp>

namespace hpcai::search {

std::vector<morphs::Morph> morphs_of(std::span<const EditRecord> edits) {
    std::vector<morphs::Morph> result;
    for (const EditRecord& edit : edits) {
        const auto row =
            std::ranges::find(morphs::kMorphNames, edit.kind, &morphs::MorphName::name);
        require(row != morphs::kMorphNames.end(), ExitCode::data, "unknown edit '{}'",
                printable(edit.kind));
        result.push_back({row->kind, edit.node, edit.end, edit.amount});
    }
    return result;
}

std::vector<EditRecord> edits_of(std::span<const morphs::Morph> morphs) {
    std::vector<EditRecord> result;
    for (const morphs::Morph& morph : morphs) {
        result.push_back(
            {std::string(morphs::name_of(morph.kind)), morph.node, morph.end, morph.amount});
    }
    return result;
}

}  // namespace hpcai::search
