// SPDX-License-Identifier: GPL-2.0-only
// The dumbbell and the TCP settings, shared by dumbbell.cc and probe.cc.
#ifndef TIDEGATE_NS3_COMMON_H
#define TIDEGATE_NS3_COMMON_H

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <string>
#include <vector>

constexpr uint32_t kMss = 1460;
constexpr uint16_t kPort = 5001;
constexpr double kBottleneckBps = 10e6;
constexpr double kConnTimeout = 3; // s

// Retry limits are ns-3's defaults; they decide which flows die in overload.
struct TcpSettings
{
    uint32_t synRetries = 6;
    uint32_t dataRetries = 6;
    uint32_t window = 65535; // receive buffer
    bool ecn = false;
};

inline void
SetTcpDefaults(const TcpSettings& s)
{
    using namespace ns3;
    auto set = [](const char* name, const AttributeValue& v) { Config::SetDefault(name, v); };
    set("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    // The default, PRR, works without SACK too but is not NewReno.
    set("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    set("ns3::TcpSocketBase::Sack", BooleanValue(false));
    set("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    set("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    // No scaling and a receive buffer of 65 535: the window is 65 535 whatever
    // the state, and SYNs carry no option. A larger buffer needs scaling.
    set("ns3::TcpSocketBase::WindowScaling", BooleanValue(s.window > 65535));
    set("ns3::TcpSocketBase::UseEcn", StringValue(s.ecn ? "On" : "Off"));
    set("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    // TIME_WAIT is twice this. The default 120 s would leave thousands of dead
    // sockets in lists which ns-3 scans linearly for every packet.
    set("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(2.0));
    set("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
    set("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    set("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    set("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    set("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(kConnTimeout)));
    set("ns3::TcpSocket::ConnCount", UintegerValue(s.synRetries));
    set("ns3::TcpSocket::DataRetries", UintegerValue(s.dataRetries));
    set("ns3::TcpSocket::RcvBufSize", UintegerValue(s.window));
    // Whole segments: 44 of them as a rule. A send buffer above the receiver's window makes ns-3
    // ask its buffer for zero bytes during recovery, and crash; one that is
    // not a multiple of the MSS makes it send runts.
    set("ns3::TcpSocket::SndBufSize", UintegerValue(s.window / kMss * kMss));
}

struct Dumbbell
{
    ns3::NodeContainer senders, receivers, routers;
    std::vector<ns3::Ipv4Address> receiverAddress;
    ns3::Ptr<ns3::PointToPointNetDevice> bottleneck; // left router's, towards the right
    ns3::Ptr<ns3::Queue<ns3::Packet>> queue;         // the only queue which may drop

    Dumbbell(uint32_t pairs, uint32_t queuePackets, double delayMs = 1)
    {
        using namespace ns3;
        senders.Create(pairs);
        receivers.Create(pairs);
        routers.Create(2);

        InternetStackHelper stack;
        Ipv4StaticRoutingHelper routing;
        stack.SetRoutingHelper(routing); // global routing costs more per packet
        stack.SetIpv6StackInstall(false);
        stack.Install(NodeContainer(senders, receivers, routers));

        auto link = [delayMs](const char* rate, const char* packets) {
            PointToPointHelper p;
            p.SetDeviceAttribute("DataRate", StringValue(rate));
            p.SetChannelAttribute("Delay", TimeValue(Seconds(delayMs / 1e3)));
            p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(packets));
            // Without flow control the address helper installs no queue disc:
            // the device's queue is the only one on each link.
            p.DisableFlowControl();
            return p;
        };
        auto edge = link("100Mbps", "1000000p");
        auto core = link("10Mbps", (std::to_string(queuePackets) + "p").c_str());

        Ipv4AddressHelper net("10.0.0.0", "255.255.255.0");
        auto connect = [&](PointToPointHelper& h, Ptr<Node> a, Ptr<Node> b) {
            NetDeviceContainer d = h.Install(a, b);
            net.Assign(d);
            net.NewNetwork();
            return d;
        };
        auto addr = [](Ptr<Node> n) { return n->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal(); };

        NetDeviceContainer mid = connect(core, routers.Get(0), routers.Get(1));
        bottleneck = DynamicCast<PointToPointNetDevice>(mid.Get(0));
        queue = bottleneck->GetQueue();
        // ACKs must not be lost: the way back gets a queue without a bound.
        DynamicCast<PointToPointNetDevice>(mid.Get(1))
            ->GetQueue()
            ->SetMaxSize(QueueSize("1000000p"));
        for (uint32_t i = 0; i < pairs; i++)
        {
            connect(edge, senders.Get(i), routers.Get(0));
            connect(edge, receivers.Get(i), routers.Get(1));
            receiverAddress.push_back(addr(receivers.Get(i)));
        }
        // Every host and router: a default route out of interface 1, which is
        // the bottleneck on routers; the routers' edges are directly connected.
        for (auto group : {senders, receivers, routers})
        {
            for (auto n = group.Begin(); n != group.End(); ++n)
            {
                auto ipv4 = (*n)->GetObject<Ipv4>();
                routing.GetStaticRouting(ipv4)->SetDefaultRoute(Ipv4Address::GetZero(), 1);
                auto tc = (*n)->GetObject<TrafficControlLayer>();
                for (uint32_t d = 0; d < (*n)->GetNDevices(); d++)
                {
                    NS_ABORT_MSG_IF(tc && tc->GetRootQueueDiscOnDevice((*n)->GetDevice(d)),
                                    "a queue disc sits in front of a device queue");
                }
            }
        }
    }
};

#endif
