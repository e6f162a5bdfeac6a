// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/data/climate_file.hpp>

#include "command.hpp"
#include "picture_survey.hpp"

/// What commands on data do with ExtremeWeather files and with records made from them.
namespace hpcai::cli {

enum class DataKind : std::uint8_t { pictures, climate, records };

/// By names alone: *.h5, *.hdf5 or a folder with such files; a folder with records.json.
DataKind kind_of(const std::string& path);

/// --box-order detect|corners|ranges.
void add_box_order(Command command, data::ClimateFileSettings& settings);

/// `data check`: reads every value. Throws Error(data) after printing when samples are bad.
ExitCode check_climate(const SurveyOptions& options, const data::ClimateFileSettings& settings,
                       std::ostream& out);
/// Compares every checksum and looks at every number. Throws Error(data) for the first checksum
/// that differs, or after printing when samples are bad.
ExitCode check_records(const SurveyOptions& options, std::ostream& out);

/// `data stats`: mean, deviation and range of each channel in physical units.
ExitCode print_climate_statistics(const SurveyOptions& options,
                                  const data::ClimateFileSettings& settings, std::ostream& out);
/// The statistics that the records were normalized with.
ExitCode print_record_statistics(const SurveyOptions& options, std::ostream& out);

}  // namespace hpcai::cli
