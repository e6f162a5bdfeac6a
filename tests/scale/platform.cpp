// SPDX-License-Identifier: Apache-2.0
// The machines of scripts/simulate_scale.sh. SimGrid loads this library as its platform. The
// environment has the name, number of nodes and scale of bandwidths of the machine.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;
constexpr auto kDuplex = sg4::Link::SharingPolicy::SPLITDUPLEX;

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::invalid_argument(std::string(name) + " is not set");
    return value;
}

/// A device is a host of its own, so that its messages share its link.
struct Node {
    int devices;
    double bytes_per_second;  // of a device, each way
    double latency_seconds;   // of its link, passed twice by a message
};

sg4::ClusterCallbacks make_nodes(const Node& node) {
    return sg4::ClusterCallbacks([node](sg4::NetZone* machine, const std::vector<unsigned long>&,
                                        unsigned long number) {
        const std::string name = "node" + std::to_string(number);
        sg4::NetZone* zone = sg4::create_star_zone("zone of " + name)->set_parent(machine);
        auto* router = zone->create_router("router of " + name);
        for (int device = 0; device < node.devices; ++device) {
            sg4::Host* host = zone->create_host(name + "." + std::to_string(device), "1Gf");
            auto* link = zone->create_split_duplex_link(host->get_name(), node.bytes_per_second);
            link->set_latency(node.latency_seconds);
            zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                            {{link, sg4::LinkInRoute::Direction::UP}}, true);
        }
        zone->seal();
        return std::pair{zone->get_netpoint(), router};
    });
}

unsigned ceil_div(unsigned count, unsigned size) {
    return (count + size - 1) / size;
}

/// NVIDIA's Selene (TOP500 of June 2020; DGX SuperPOD reference architecture RA-09950-001): nodes
/// of eight A100 GPUs with NVLink (300 GB/s for each GPU) and eight HDR InfiniBand ports (25 GB/s
/// each, one link here), 20 nodes on a leaf switch, as many links up as down.
sg4::NetZone* make_fat_tree(unsigned nodes, double scale) {
    const unsigned leaves = ceil_div(nodes, 20);
    return sg4::create_fatTree_zone("selene", nullptr, {2, {20, leaves}, {1, 20}, {1, 1}},
                                    make_nodes({8, 300e9 * scale, 250e-9}), 200e9 * scale, 125e-9,
                                    kDuplex);
}

/// Frontier of Oak Ridge (glennklockwood.com/garden/systems/frontier): nodes of eight GCDs with
/// four NICs (25 GB/s each), groups of 128 nodes and 32 switches, each connected with all others
/// of the group, and four links of 25 GB/s between two groups. A GCD has 50 GB/s here. The model
/// has links of one bandwidth, that of a node's NICs: between groups, this is all four links.
sg4::NetZone* make_dragonfly(unsigned nodes, double scale) {
    const unsigned groups = std::max(2U, ceil_div(nodes, 128));
    return sg4::create_dragonfly_zone("frontier", nullptr, {{groups, 1}, {1, 1}, {32, 1}, 4},
                                      make_nodes({8, 50e9 * scale, 250e-9}), 100e9 * scale, 100e-9,
                                      kDuplex);
}

/// The K computer (Ajima et al., Computer 42(11), 2009): a torus of X x Y x Z units of 2 x 3 x 2
/// nodes with links of 5 GB/s each way, and one rank per node. A node injects 20 GB/s.
sg4::NetZone* make_torus(unsigned nodes, double scale) {
    const unsigned units = ceil_div(nodes, 12);
    const auto side = static_cast<unsigned>(std::ceil(std::cbrt(units)));
    const unsigned rest = ceil_div(units, side * side);
    std::vector<unsigned long> sides{side, side, rest, 2, 3, 2};
    std::erase(sides, 1);
    return sg4::create_torus_zone("k", nullptr, sides, make_nodes({1, 20e9 * scale, 400e-9}),
                                  5e9 * scale, 100e-9, kDuplex);
}

}  // namespace

extern "C" void load_platform(const sg4::Engine&) {
    const auto nodes = static_cast<unsigned>(std::stoul(environment("SCALE_NODES")));
    const double scale = std::stod(environment("SCALE_OF_BANDWIDTHS"));
    const std::string machine = environment("SCALE_MACHINE");
    sg4::NetZone* zone = machine == "fat_tree"    ? make_fat_tree(nodes, scale)
                         : machine == "dragonfly" ? make_dragonfly(nodes, scale)
                                                  : make_torus(nodes, scale);
    zone->seal();
}
