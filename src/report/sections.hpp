// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "markup.hpp"

/// The sections of the page; a section is empty if the run has nothing to show there.
namespace hpcai::report {

struct PageContent;

Markup verdict_section(const RunRecord& record);
Markup headline(const RunRecord& record);
Markup groups_section(const RunRecord& record);
Markup quality_section(const PageContent& content);
Markup classes_section(const PageContent& content);
Markup time_section(const PageContent& content);
Markup utilization_section(const PageContent& content);
Markup communication_section(const RunRecord& record);
Markup energy_section(const RunRecord& record);
Markup flops_section(const PageContent& content);
Markup settings_sections(const RunRecord& record);

std::string_view style_sheet();

}  // namespace hpcai::report
