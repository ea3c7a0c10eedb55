// SPDX-License-Identifier: GPL-2.0-only
// ns-3.37 as a peer: TCP transfers without end through an 802.11a cell, some up
// and some down. See wifi.md for what is measured.
#include "common.h"

#include "ns3/applications-module.h"
#include "ns3/mobility-module.h"
#include "ns3/wifi-module.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>

using namespace ns3;

namespace
{

constexpr double kBegin = 1; // s; by then all stations have associated

struct Options
{
    uint32_t up = 5, down = 5, buffer = 30; // transfers, packets
    double duration = 30;                   // s
    uint64_t seed = 1;
    bool notice = false; // whether every frame is noticed, also beneath a stronger one
};

Options
Parse(int argc, char** argv)
{
    Options o;
    const option known[] = {{"up", 1, nullptr, 'u'},
                            {"down", 1, nullptr, 'd'},
                            {"buffer", 1, nullptr, 'b'},
                            {"duration", 1, nullptr, 't'},
                            {"seed", 1, nullptr, 's'},
                            {"notice-all", 0, nullptr, 'n'},
                            {nullptr, 0, nullptr, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;)
    {
        switch (c)
        {
        case 'u':
            o.up = std::atoi(optarg);
            break;
        case 'd':
            o.down = std::atoi(optarg);
            break;
        case 'b':
            o.buffer = std::atoi(optarg);
            break;
        case 't':
            o.duration = std::atof(optarg);
            break;
        case 's':
            o.seed = std::atoll(optarg);
            break;
        case 'n':
            o.notice = true;
            break;
        default:
            std::exit(2);
        }
    }
    return o;
}

// A queue disc would be a second queue in front of that of the device.
void
RefuseQueueDiscs(const NodeContainer& nodes)
{
    for (auto n = nodes.Begin(); n != nodes.End(); ++n)
    {
        auto tc = (*n)->GetObject<TrafficControlLayer>();
        for (uint32_t d = 0; d < (*n)->GetNDevices(); d++)
        {
            NS_ABORT_MSG_IF(tc && tc->GetRootQueueDiscOnDevice((*n)->GetDevice(d)),
                            "a queue disc sits in front of a device queue");
        }
    }
}

} // namespace

int
main(int argc, char** argv)
{
    Options o = Parse(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(o.seed);
    SetTcpDefaults(TcpSettings{});

    uint32_t pairs = o.up + o.down;
    NodeContainer stations(pairs), hosts(pairs), ap(1), router(1);

    auto phy = YansWifiPhyHelper();
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    if (o.notice)
    {
        phy.DisablePreambleDetectionModel();
    }
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("OfdmRate54Mbps"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    wifi.DisableFlowControl();
    WifiMacHelper mac;
    Ssid ssid("cell");
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid));
    NetDeviceContainer air = wifi.Install(phy, mac, stations);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid));
    NetDeviceContainer apAir = wifi.Install(phy, mac, ap);
    auto limit = [](Ptr<NetDevice> device, uint32_t packets) {
        auto queue = DynamicCast<WifiNetDevice>(device)->GetMac()->GetTxop()->GetWifiMacQueue();
        queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
        queue->SetMaxDelay(Seconds(1000));
    };
    limit(apAir.Get(0), o.buffer);
    for (uint32_t i = 0; i < pairs; i++)
    {
        limit(air.Get(i), 1000);
    }

    // All stations on a circle of 5 m around the access point.
    auto places = CreateObject<ListPositionAllocator>();
    for (uint32_t i = 0; i < pairs; i++)
    {
        double angle = 2 * M_PI * i / pairs;
        places->Add(Vector(5 * std::cos(angle), 5 * std::sin(angle), 0));
    }
    places->Add(Vector(0, 0, 0));
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(stations);
    mobility.Install(ap);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    NodeContainer all(stations, hosts, ap, router);
    stack.Install(all);
    auto link = [](const char* rate, const char* delay) {
        PointToPointHelper p;
        p.SetDeviceAttribute("DataRate", StringValue(rate));
        p.SetChannelAttribute("Delay", StringValue(delay));
        p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
        p.DisableFlowControl();
        return p;
    };
    Ipv4AddressHelper net("10.0.0.0", "255.255.255.0");
    net.Assign(NetDeviceContainer(apAir, air));
    net.NewNetwork();
    auto wire = link("1Gbps", "0ms");
    net.Assign(wire.Install(ap.Get(0), router.Get(0)));
    net.NewNetwork();
    auto edge = link("100Mbps", "2ms");
    for (uint32_t i = 0; i < pairs; i++)
    {
        net.Assign(edge.Install(hosts.Get(i), router.Get(0)));
        net.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    RefuseQueueDiscs(all);

    auto address = [](Ptr<Node> n) { return n->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal(); };
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < pairs; i++)
    {
        bool upload = i < o.up;
        Ptr<Node> from = upload ? stations.Get(i) : hosts.Get(i);
        Ptr<Node> to = upload ? hosts.Get(i) : stations.Get(i);
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), kPort));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(to).Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(address(to), kPort));
        bulk.SetAttribute("SendSize", UintegerValue(kMss));
        bulk.Install(from).Start(Seconds(kBegin));
    }
    Simulator::Stop(Seconds(kBegin + o.duration));
    auto t0 = std::chrono::steady_clock::now();
    Simulator::Run();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    double mbits[2] = {};
    for (uint32_t i = 0; i < pairs; i++)
    {
        mbits[i < o.up ? 0 : 1] += sinks[i]->GetTotalRx() * 8 / o.duration / 1e6;
    }
    std::printf("{\"up\":%u,\"down\":%u,\"buffer\":%u,\"duration\":%g,\"seed\":%lu,"
                "\"up_mbits\":%.4f,\"down_mbits\":%.4f,\"wall_s\":%.1f}\n",
                o.up, o.down, o.buffer, o.duration, (unsigned long)o.seed, mbits[0], mbits[1],
                wall);
    Simulator::Destroy();
}
