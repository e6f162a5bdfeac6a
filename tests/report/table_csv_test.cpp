// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>

#include "example_record.hpp"

namespace hpcai::report {
namespace {

TEST(TableCsv, HasAColumnForEachPathOfAnyRow) {
    EXPECT_EQ(csv_of_json(R"([{"a":1,"b":{"c":true,"d":0.1}},{"b":{"d":null,"e":-2}}])"),
              "a,b.c,b.d,b.e\r\n1,true,0.1,\r\n,,,-2\r\n");
}

TEST(TableCsv, OmitsReasonsAndListsOfObjects) {
    EXPECT_EQ(csv_of_json(R"([{"x":null,"x_reason":"no meter","the_reason":"kept","rows":[{"y":1}],
                              "none":[],"list":[0.5,null,"z"]}])"),
              "x,the_reason,list\r\n,kept,0.5;;z\r\n");
}

TEST(TableCsv, QuotesTextsAndDisarmsFormulas) {
    EXPECT_EQ(csv_of_json(R"([{"a,b":"=1","c":"say \"hi\", twice","d":["-1","@x"],"e":"1\n2"}])"),
              "\"a,b\",c,d,e\r\n'=1,\"say \"\"hi\"\", twice\",'-1;'@x,\"1\n2\"\r\n");
}

TEST(TableCsv, HasTheSettingsAndScoresOfAResult) {
    const std::string csv = csv_of_json("[" + records::to_json(example_record()) + "]");
    const std::string header = csv.substr(0, csv.find('\r'));
    for (const char* column :
         {"verdict.status", "scores.vflops", "topology.groups", "topology.ranks",
          "time.started_utc", "utilization.fraction", "config.run.name"}) {
        EXPECT_NE(("," + header + ",").find(std::string(",") + column + ","), std::string::npos)
            << column << " in " << header;
    }
    EXPECT_EQ(header.find("_reason"), std::string::npos);
    EXPECT_EQ(header.find("work.groups"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
