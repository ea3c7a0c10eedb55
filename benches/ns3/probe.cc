// SPDX-License-Identifier: GPL-2.0-only
// One ns-3 transfer, every segment printed: what its TCP does when chosen
// packets of the forward path are lost. Packets are counted from 1 as they
// arrive at the bottleneck's far end (SYN, ACK of the handshake, data, ...).
#include "common.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

using namespace ns3;

namespace
{

uint32_t g_toSend, g_count;
uint64_t g_missing; // bytes
std::set<uint32_t> g_lose;

void
Print(const char* who, Ptr<const Packet> p, const TcpHeader& h)
{
    uint8_t f = h.GetFlags();
    auto rel = [](SequenceNumber32 s) { return double(int32_t(s.GetValue()) - 1) / kMss; };
    printf("%11.6f %-4s %s%s%s%s seq %.2f len %u ack %.2f win %u hdr %u\n",
           Simulator::Now().GetSeconds(),
           who,
           f & TcpHeader::SYN ? "S" : "",
           f & TcpHeader::FIN ? "F" : "",
           f & TcpHeader::RST ? "R" : "",
           f & TcpHeader::ACK ? "." : "",
           rel(h.GetSequenceNumber()),
           p->GetSize(),
           rel(h.GetAckNumber()),
           h.GetWindowSize(),
           h.GetSerializedSize());
}

void
Value(const char* what, double unit, double v)
{
    printf("%11.6f      %s %.3f\n", Simulator::Now().GetSeconds(), what, v / unit);
}

void
Fill(Ptr<Socket> s, uint32_t room)
{
    if (g_toSend == 0)
    {
        return;
    }
    for (; g_toSend > 0 && room >= kMss; room -= kMss, g_toSend--)
    {
        s->Send(Create<Packet>(kMss));
    }
    if (g_toSend == 0)
    {
        s->Close();
    }
}

void
Drain(Ptr<Socket> s)
{
    while (Ptr<Packet> p = s->Recv())
    {
        g_missing -= p->GetSize();
        if (g_missing == 0)
        {
            printf("%11.9f      complete\n", Simulator::Now().GetSeconds());
        }
    }
}

void
Accept(Ptr<Socket> s, const Address&)
{
    s->SetRecvCallback(MakeCallback(&Drain));
    s->SetCloseCallbacks(MakeCallback(+[](Ptr<Socket> x) { x->Close(); }),
                         MakeCallback(+[](Ptr<Socket>) {}));
    s->TraceConnectWithoutContext(
        "Tx",
        MakeCallback(+[](Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase>) {
            Print("  rx", p, h);
        }));
}

class Loser : public ErrorModel
{
    bool DoCorrupt(Ptr<Packet> p) override
    {
        bool lost = g_lose.count(++g_count) > 0;
        if (lost)
        {
            printf("%11.6f      packet %u of %u bytes on the wire LOST\n",
                   Simulator::Now().GetSeconds(),
                   g_count,
                   p->GetSize());
        }
        return lost;
    }

    void DoReset() override {}
};

} // namespace

int
main(int argc, char** argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help"))
    {
        fprintf(stderr, "usage: probe SEGMENTS [PACKET_TO_LOSE | FIRST-LAST]...\n");
        return argc < 2 ? 2 : 0;
    }
    g_toSend = uint32_t(atoi(argv[1]));
    g_missing = uint64_t(g_toSend) * kMss;
    for (int i = 2; i < argc; i++)
    {
        const char* dash = strchr(argv[i], '-');
        uint32_t a = uint32_t(atoi(argv[i])), b = dash ? uint32_t(atoi(dash + 1)) : a;
        for (; a <= b; a++)
        {
            g_lose.insert(a);
        }
    }
    SetTcpDefaults({});
    Dumbbell net(1, 300);
    auto far = DynamicCast<PointToPointNetDevice>(net.routers.Get(1)->GetDevice(0));
    // Device 0 may be the loopback: take the first which is point to point.
    for (uint32_t i = 0; !far; i++)
    {
        far = DynamicCast<PointToPointNetDevice>(net.routers.Get(1)->GetDevice(i));
    }
    far->SetReceiveErrorModel(CreateObject<Loser>());

    auto l = Socket::CreateSocket(net.receivers.Get(0), TcpSocketFactory::GetTypeId());
    l->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    l->Listen();
    l->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                         MakeCallback(&Accept));

    auto s = Socket::CreateSocket(net.senders.Get(0), TcpSocketFactory::GetTypeId());
    s->SetConnectCallback(MakeCallback(+[](Ptr<Socket> x) { Fill(x, x->GetTxAvailable()); }),
                          MakeCallback(+[](Ptr<Socket>) {
                              printf("%11.6f      CONNECT FAILED\n", Simulator::Now().GetSeconds());
                          }));
    s->SetCloseCallbacks(MakeCallback(+[](Ptr<Socket>) {
                             printf("%11.6f      closed\n", Simulator::Now().GetSeconds());
                         }),
                         MakeCallback(+[](Ptr<Socket>) {
                             printf("%11.6f      GAVE UP\n", Simulator::Now().GetSeconds());
                         }));
    s->SetSendCallback(MakeCallback(&Fill));
    s->TraceConnectWithoutContext(
        "Tx",
        MakeCallback(+[](Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase>) {
            Print("tx", p, h);
        }));
    s->TraceConnectWithoutContext("RTO", MakeCallback(+[](Time, Time t) {
                                      Value("rto s", 1, t.GetSeconds());
                                  }));
    s->TraceConnectWithoutContext("RTT", MakeCallback(+[](Time, Time t) {
                                      Value("srtt s", 1, t.GetSeconds());
                                  }));
    s->TraceConnectWithoutContext("CongestionWindow", MakeCallback(+[](uint32_t, uint32_t v) {
                                      Value("cwnd mss", kMss, v);
                                  }));
    s->TraceConnectWithoutContext("SlowStartThreshold", MakeCallback(+[](uint32_t, uint32_t v) {
                                      Value("ssthresh mss", kMss, v);
                                  }));
    s->Connect(InetSocketAddress(net.receiverAddress[0], kPort));
    Simulator::Stop(Seconds(400));
    Simulator::Run();
    fflush(stdout);
    _Exit(0);
}
