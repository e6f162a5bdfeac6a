// SPDX-License-Identifier: Apache-2.0
#include "fake_sysfs.hpp"

namespace hpcai::meters {
namespace {

using Names = std::vector<std::string>;

constexpr int kEthernet = 1;
constexpr int kInfiniband = 32;
constexpr int kLoopback = 772;

/// Switches to an unprivileged user if the tests run as root, for whom permissions have no effect.
class AsNobody {
public:
    AsNobody() { EXPECT_TRUE(geteuid() != 0 || seteuid(65534) == 0); }
    AsNobody(const AsNobody&) = delete;
    AsNobody& operator=(const AsNobody&) = delete;
    ~AsNobody() { EXPECT_TRUE(getuid() != 0 || seteuid(0) == 0); }
};

TEST(Rapl, CountsPackagesAndTheirMemoryButNoOtherZonesInsideThem) {
    const FakeSysfs sysfs;
    sysfs.add_zone("intel-rapl:0", "package-0", "1000000");
    sysfs.add_zone("intel-rapl:0:0", "core", "700000");
    sysfs.add_zone("intel-rapl:0:1", "dram", "250000");
    sysfs.add_zone("intel-rapl:1", "package-1", "3000000");
    sysfs.add_zone("intel-rapl:2", "psys", "9000000");
    sysfs.add_zone("intel-rapl:2:0", "dram", "9000000");
    sysfs.add_zone("intel-rapl-mmio:0", "package-0", "1000000");
    const auto counters = processor_counters(sysfs.root());
    ASSERT_EQ(names_of(counters),
              (Names{"rapl:package-0", "rapl:package-0:dram", "rapl:package-1"}));
    EXPECT_EQ(counters[0].unit, "J");
    EXPECT_DOUBLE_EQ(counters[0].read(), 1);
    EXPECT_DOUBLE_EQ(counters[1].read(), 0.25);
    EXPECT_DOUBLE_EQ(counters[2].read(), 3);
}

TEST(Rapl, ContinuesWhenTheCounterWraps) {
    const FakeSysfs sysfs;
    sysfs.add_zone("intel-rapl:0", "package-0", "9000000", "10000000");
    const auto counters = processor_counters(sysfs.root());
    ASSERT_EQ(counters.size(), 1U);
    EXPECT_DOUBLE_EQ(counters[0].read(), 9);
    for (const auto& [microjoules, joules] :
         {std::pair{"1000000", 11.0}, {"8000000", 18.0}, {"0", 20.0}, {"5", 20.000005}}) {
        sysfs.put("class/powercap/intel-rapl:0/energy_uj", microjoules);
        EXPECT_DOUBLE_EQ(counters[0].read(), joules) << microjoules;
    }
}

TEST(Rapl, ReportsDeniedAccessInsteadOfZero) {
    const FakeSysfs sysfs;
    sysfs.add_zone("intel-rapl:0", "package-0", "1000000");
    fs::permissions(sysfs.root() / "class/powercap/intel-rapl:0/energy_uj", fs::perms::none);
    const AsNobody nobody;
    const auto counters = processor_counters(sysfs.root());
    ASSERT_EQ(names_of(counters), Names{"rapl:package-0"});
    EXPECT_EQ(counters[0].failure,
              (sysfs.root() / "class/powercap/intel-rapl:0/energy_uj").string() +
                  ": Permission denied (EACCES)");
    EXPECT_FALSE(counters[0].read);
}

TEST(Rapl, ReportsTextThatIsNoNumber) {
    const FakeSysfs sysfs;
    sysfs.add_zone("intel-rapl:0", "package-0", "-5");
    const auto counters = processor_counters(sysfs.root());
    ASSERT_EQ(counters.size(), 1U);
    EXPECT_NE(counters[0].failure.find("energy_uj: expected a whole number, found \"-5\""),
              std::string::npos)
        << counters[0].failure;
}

TEST(Rapl, IsReportedAbsentIfThereIsNone) {
    const FakeSysfs sysfs;
    const auto counters = processor_counters(sysfs.root());
    ASSERT_EQ(names_of(counters), Names{"rapl"});
    EXPECT_NE(counters[0].failure.find("class/powercap shows no energy"), std::string::npos);
}

TEST(Interfaces, AreThoseOfDevicesWithoutVirtualOnesOnTopOfThem) {
    const FakeSysfs sysfs;
    sysfs.add_interface("lo", kLoopback, "999", "999");
    sysfs.add_interface("eth0", kEthernet, "100", "200");
    sysfs.put("class/net/eth0/device/vendor", "0x8086");
    sysfs.put("class/net/eth0/master/name", "bond0");
    sysfs.add_interface("bond0", kEthernet, "100", "200");
    sysfs.put("class/net/bond0/bonding/mode", "active-backup 1");
    sysfs.add_interface("docker0", kEthernet, "50", "50");
    sysfs.put("class/net/docker0/bridge/bridge_id", "1");
    sysfs.add_interface("dummy0", kEthernet, "1", "1");
    const auto counters = interface_counters(sysfs.root());
    ASSERT_EQ(names_of(counters), (Names{"net:eth0:sent", "net:eth0:received"}));
    EXPECT_EQ(counters[0].unit, "B");
    EXPECT_EQ(counters[0].read(), 100);
    EXPECT_EQ(counters[1].read(), 200);
}

TEST(Interfaces, OfAContainerAreTheIndependentOnes) {
    const FakeSysfs sysfs;
    sysfs.add_interface("lo", kLoopback, "999", "999");
    sysfs.add_interface("eth0", kEthernet, "100", "200");
    sysfs.add_interface("eth0.7", kEthernet, "100", "200");
    sysfs.put("class/net/eth0.7/lower_eth0/name", "eth0");
    sysfs.add_interface("tun0", kEthernet, "100", "200");
    sysfs.put("class/net/tun0/tun_flags", "0x1");
    sysfs.add_interface("br0", kEthernet, "7", "7");
    sysfs.put("class/net/br0/bridge/bridge_id", "1");
    sysfs.add_interface("veth1", kEthernet, "7", "7");
    sysfs.put("class/net/veth1/master/name", "br0");
    EXPECT_EQ(names_of(interface_counters(sysfs.root())),
              (Names{"net:eth0:sent", "net:eth0:received"}));
}

TEST(Interfaces, OfAnotherNetworkNamespaceAreDetected) {
    const FakeSysfs sysfs;
    EXPECT_FALSE(shows_own_interfaces(sysfs.root()));
    sysfs.put("class/net/lo/ifindex", "1");
    sysfs.put("class/net/lo/address", "02:00:00:00:00:01");  // a loopback's address is zero
    EXPECT_FALSE(shows_own_interfaces(sysfs.root()));
}

TEST(Interfaces, OfInfinibandCountWordsOfFourBytesAndCarryItsIp) {
    const FakeSysfs sysfs;
    sysfs.add_port("mlx5_0/ports/1", "25");
    sysfs.add_interface("ib0", kInfiniband, "90", "90");
    sysfs.put("class/net/ib0/device/vendor", "0x15b3");
    sysfs.add_interface("eth0", kEthernet, "5", "6");
    sysfs.put("class/net/eth0/device/vendor", "0x8086");
    const auto counters = interface_counters(sysfs.root());
    ASSERT_EQ(names_of(counters), (Names{"ib:mlx5_0/1:sent", "ib:mlx5_0/1:received",
                                         "net:eth0:sent", "net:eth0:received"}));
    EXPECT_EQ(counters[0].read(), 100);
}

TEST(Interfaces, ReportASaturated32BitPortCounter) {
    const FakeSysfs sysfs;
    sysfs.add_port("mlx4_0/ports/1", "4294967295");
    const auto counters = interface_counters(sysfs.root());
    ASSERT_EQ(counters.size(), 2U);
    EXPECT_NE(counters[0].failure.find("maximum of 32 bits"), std::string::npos)
        << counters[0].failure;
}

TEST(Interfaces, ThatDisappearFailWithTheNameOfTheirFile) {
    const FakeSysfs sysfs;
    sysfs.add_interface("eth0", kEthernet, "100", "200");
    const auto counters = interface_counters(sysfs.root());
    ASSERT_EQ(counters.size(), 2U);
    fs::remove_all(sysfs.root() / "class/net/eth0");
    EXPECT_NE(message_of(counters[0].read).find("eth0/statistics/tx_bytes: No such file"),
              std::string::npos)
        << message_of(counters[0].read);
}

}  // namespace
}  // namespace hpcai::meters
