// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/report/page_content.hpp>

#include "markup.hpp"

/// The parts of the page, each empty where a run has nothing to show there.
namespace hpcai::report {

Markup verdict_section(const RunRecord& record);
Markup headline(const RunRecord& record);
Markup groups_section(const RunRecord& record);
Markup quality_section(const PageContent& content);
Markup classes_section(const QualityRecord& quality);
Markup time_section(const PageContent& content);
Markup utilization_section(const PageContent& content);
Markup communication_section(const RunRecord& record);
Markup energy_section(const RunRecord& record);
Markup flops_section(const PageContent& content);
Markup settings_sections(const RunRecord& record);

/// The page's style sheet.
std::string_view style_sheet();

}  // namespace hpcai::report
