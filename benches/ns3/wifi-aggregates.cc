// SPDX-License-Identifier: GPL-2.0-only
// ns-3.37 as a peer: stations of an 802.11n cell that always have datagrams for
// the access point, in A-MPDUs. See wifi.md for what is measured.
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

constexpr double kBegin = 1;     // s; by then all stations have associated
constexpr double kFull = 2;      // s; from then on all have always something to send
constexpr double kMeasured = 2.5;
constexpr uint32_t kUdp = 1472;  // bytes of payload in an IP packet of 1 500
constexpr double kOffered = 100; // Mb/s of all stations together; the channel has 65

struct Options
{
    uint32_t stations = 5;
    uint32_t aggregate = 65535; // bytes at most
    double duration = 10;       // s
    uint32_t retries = 100;     // of a frame before it is given up
    uint64_t seed = 1;
};

Options
Parse(int argc, char** argv)
{
    Options o;
    const option known[] = {{"stations", 1, nullptr, 'n'},
                            {"aggregate", 1, nullptr, 'a'},
                            {"duration", 1, nullptr, 't'},
                            {"retries", 1, nullptr, 'r'},
                            {"seed", 1, nullptr, 's'},
                            {nullptr, 0, nullptr, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;)
    {
        switch (c)
        {
        case 'n':
            o.stations = std::atoi(optarg);
            break;
        case 'a':
            o.aggregate = std::atoi(optarg);
            break;
        case 't':
            o.duration = std::atof(optarg);
            break;
        case 'r':
            o.retries = std::atoi(optarg);
            break;
        case 's':
            o.seed = std::atoll(optarg);
            break;
        default:
            std::exit(2);
        }
    }
    return o;
}

} // namespace

int
main(int argc, char** argv)
{
    Options o = Parse(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(o.seed);
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(o.retries));
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(o.retries));
    // What was not acknowledged is sent again at once, without a BlockAckReq before.
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(false));

    NodeContainer stations(o.stations), ap(1);
    auto phy = YansWifiPhyHelper();
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    // Everybody notices every collision.
    phy.DisablePreambleDetectionModel();
    // One stream of 20 MHz at 5 GHz with the long guard interval: 65 Mb/s.
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("HtMcs7"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    wifi.DisableFlowControl();
    WifiMacHelper mac;
    Ssid ssid("cell");
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize",
                UintegerValue(o.aggregate));
    NetDeviceContainer air = wifi.Install(phy, mac, stations);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid));
    NetDeviceContainer apAir = wifi.Install(phy, mac, ap);
    for (uint32_t i = 0; i < o.stations; i++)
    {
        // Else packets expire after half a second in the queue.
        auto wireless = DynamicCast<WifiNetDevice>(air.Get(i));
        wireless->GetMac()->GetQosTxop(AC_BE)->GetWifiMacQueue()->SetMaxDelay(Seconds(1000));
    }

    // All stations on a circle of 5 m around the access point.
    auto places = CreateObject<ListPositionAllocator>();
    for (uint32_t i = 0; i < o.stations; i++)
    {
        double angle = 2 * M_PI * i / o.stations;
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
    NodeContainer all(stations, ap);
    stack.Install(all);
    Ipv4AddressHelper net("10.0.0.0", "255.255.0.0");
    net.Assign(NetDeviceContainer(apAir, air));
    Ipv4Address to = ap.Get(0)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();

    PacketSinkHelper sink("ns3::UdpSocketFactory",
                          InetSocketAddress(Ipv4Address::GetAny(), kPort));
    auto sunk = DynamicCast<PacketSink>(sink.Install(ap.Get(0)).Get(0));
    for (uint32_t i = 0; i < o.stations; i++)
    {
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(to, kPort));
        source.SetConstantRate(DataRate(uint64_t(kOffered * 1e6 / o.stations)), kUdp);
        // A few packets of each while nobody else sends: for ARP, and so that block
        // acknowledgement is agreed on, which takes too long in a full cell.
        source.SetAttribute("MaxBytes", UintegerValue(20 * kUdp));
        source.Install(stations.Get(i)).Start(Seconds(kBegin + 0.02 * i));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.Install(stations.Get(i)).Start(Seconds(kFull));
    }
    uint64_t before = 0;
    Simulator::Schedule(Seconds(kMeasured), [&] { before = sunk->GetTotalRx(); });
    Simulator::Stop(Seconds(kMeasured + o.duration));
    auto t0 = std::chrono::steady_clock::now();
    Simulator::Run();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    double packets = double(sunk->GetTotalRx() - before) / kUdp;
    std::printf("{\"stations\":%u,\"aggregate\":%u,\"duration\":%g,\"retries\":%u,\"seed\":%lu,"
                "\"ip_mbits\":%.4f,\"wall_s\":%.1f}\n",
                o.stations, o.aggregate, o.duration, o.retries, (unsigned long)o.seed,
                packets * 1500 * 8 / o.duration / 1e6, wall);
    Simulator::Destroy();
}
