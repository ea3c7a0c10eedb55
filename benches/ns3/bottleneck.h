// SPDX-License-Identifier: GPL-2.0-only
// Queue discs of ns-3 at the bottleneck in the place of the device's queue, and
// what is measured there: for dumbbell.cc.
#ifndef TIDEGATE_NS3_BOTTLENECK_H
#define TIDEGATE_NS3_BOTTLENECK_H

#include "common.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <unordered_map>

// The disciplines, by their names on the command line. `fifo` is ns-3's
// FifoQueueDisc: it must do what the device's DropTail queue does, to the packet,
// if the way in which discs are put in changes nothing.
constexpr const char* kQueues[] = {"droptail", "fifo", "codel", "fqcodel", "pie", "red", "red-wait"};

inline bool
IsQueue(const std::string& name)
{
    return std::find(std::begin(kQueues), std::end(kQueues), name) != std::end(kQueues);
}

// Parameters as RFC 8289, 8290 and 8033 have them, and RED's as `Floyd 1997` and
// `Floyd 2000` do. Those which are ns-3's defaults too are set all the same.
inline ns3::Ptr<ns3::QueueDisc>
MakeQueueDisc(const std::string& name, uint32_t packets, bool ecn, uint64_t seed)
{
    using namespace ns3;
    auto size = QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets));
    // RFC 8289 does not drop while at most one packet of full size is left,
    // ns-3 while less than MinBytes are left. FQ-CoDel makes its CoDels with
    // this default too.
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(1501));
    if (name == "fifo")
    {
        return CreateObjectWithAttributes<FifoQueueDisc>("MaxSize", size);
    }
    if (name == "codel")
    {
        return CreateObjectWithAttributes<CoDelQueueDisc>("MaxSize", size,
                                                          "Target", StringValue("5ms"),
                                                          "Interval", StringValue("100ms"),
                                                          "UseEcn", BooleanValue(ecn));
    }
    if (name == "fqcodel")
    {
        auto disc = CreateObjectWithAttributes<FqCoDelQueueDisc>(
            "MaxSize", size,
            "Target", StringValue("5ms"),
            "Interval", StringValue("100ms"),
            "Flows", UintegerValue(1024),
            "DropBatchSize", UintegerValue(64),
            "Perturbation", UintegerValue(seed),
            "UseEcn", BooleanValue(ecn));
        disc->SetQuantum(1514);
        return disc;
    }
    Ptr<QueueDisc> disc;
    auto set = [&](const char* attribute, const AttributeValue& v) {
        disc->SetAttribute(attribute, v);
    };
    RngSeedManager::SetRun(seed);
    if (name == "red" || name == "red-wait")
    {
        auto red = CreateObject<RedQueueDisc>();
        disc = red;
        set("MaxSize", size);
        set("MinTh", DoubleValue(5));
        set("MaxTh", DoubleValue(15));
        set("LInterm", DoubleValue(10)); // one over the probability at MaxTh
        set("QW", DoubleValue(0.002));
        set("Gentle", BooleanValue(true));
        set("Wait", BooleanValue(name == "red-wait"));
        // A usual packet of 1 ms: how fast the average falls while it is idle.
        set("LinkBandwidth", StringValue("10Mbps"));
        set("MeanPktSize", UintegerValue(1250));
        set("UseEcn", BooleanValue(ecn));
        red->AssignStreams(1);
        return disc;
    }
    auto pie = CreateObject<PieQueueDisc>();
    disc = pie;
    set("MaxSize", size);
    set("QueueDelayReference", TimeValue(MilliSeconds(15)));
    set("Tupdate", TimeValue(MilliSeconds(15)));
    set("A", DoubleValue(0.125));
    set("B", DoubleValue(1.25));
    set("MaxBurstAllowance", TimeValue(MilliSeconds(150)));
    set("UseCapDropAdjustment", BooleanValue(true));
    set("UseDerandomization", BooleanValue(false));
    set("UseDequeueRateEstimator", BooleanValue(false));
    set("MarkEcnThreshold", DoubleValue(0.1));
    set("UseEcn", BooleanValue(ecn));
    pie->AssignStreams(1);
    return disc;
}

// Puts `disc` in front of the device so that it is the only queue: a packet
// leaves it when its transmission begins. The usual flow control, by the space in
// the device's queue, would let one more packet wait behind the disc, unseen by it.
inline void
Install(ns3::Ptr<ns3::PointToPointNetDevice> device, ns3::Ptr<ns3::QueueDisc> disc)
{
    using namespace ns3;
    auto gate = CreateObject<NetDeviceQueueInterface>();
    device->AggregateObject(gate);
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, disc);
    auto queue = gate->GetTxQueue(0);
    using Trace = Callback<void, Ptr<const Packet>>;
    device->TraceConnectWithoutContext(
        "PhyTxBegin", Trace([queue](Ptr<const Packet>) { queue->Stop(); }));
    device->TraceConnectWithoutContext(
        "PhyTxEnd", Trace([queue](Ptr<const Packet>) { queue->Wake(); }));
}

// Linear interpolation between order statistics, as most tools do by default.
inline double
Quantile(const std::vector<double>& sorted, double q)
{
    double x = q * double(sorted.size() - 1);
    size_t i = size_t(x);
    return i + 1 < sorted.size() ? sorted[i] + (x - double(i)) * (sorted[i + 1] - sorted[i])
                                 : sorted[i];
}

// Counts what goes through the bottleneck's queue from some time on, the handshakes
// included. Time in the queue is that of packets sent, not of those dropped later.
class Watch
{
  public:
    // With `rows`, keeps every packet and its fate for Watch::Write.
    void On(ns3::Ptr<ns3::QueueDisc> disc, double from, bool rows)
    {
        using namespace ns3;
        m_from = Seconds(from);
        m_rows = rows;
        using Item = Ptr<const QueueDiscItem>;
        using One = Callback<void, Item>;
        using Why = Callback<void, Item, const char*>;
        disc->TraceConnectWithoutContext("Enqueue", One([this](Item i) {
                                             Arrived(i);
                                         }));
        disc->TraceConnectWithoutContext("Dequeue", One([this](Item i) {
                                             Left(Simulator::Now() - i->GetTimeStamp(),
                                                  i->GetSize());
                                             SetFate(i, Simulator::Now().GetNanoSeconds());
                                         }));
        disc->TraceConnectWithoutContext("DropBeforeEnqueue", Why([this](Item i, const char* why) {
                                             Arrived(i);
                                             Lost(why);
                                             SetFate(i, kLost);
                                         }));
        disc->TraceConnectWithoutContext("DropAfterDequeue", Why([this](Item, const char* why) {
                                             // It has been counted as sent.
                                             m_waiting = false;
                                             Lost(why);
                                             if (m_rows)
                                             {
                                                 m_all[m_last].fate = kLost;
                                             }
                                         }));
        disc->TraceConnectWithoutContext("Mark", Why([this](Item, const char*) {
                                             m_marked += Counts();
                                         }));
    }

    // The device's own queue, which stamps nothing.
    void On(ns3::Ptr<ns3::Queue<ns3::Packet>> queue, double from)
    {
        using namespace ns3;
        m_from = Seconds(from);
        using Trace = Callback<void, Ptr<const Packet>>;
        queue->TraceConnectWithoutContext("Enqueue", Trace([this](Ptr<const Packet>) {
                                              m_arrived += Counts();
                                              m_since.push_back(Simulator::Now());
                                          }));
        queue->TraceConnectWithoutContext("Dequeue", Trace([this](Ptr<const Packet> p) {
                                              // Less the header that the disc does not see.
                                              Left(Simulator::Now() - m_since.front(),
                                                   p->GetSize() - 2);
                                              m_since.pop_front();
                                          }));
        queue->TraceConnectWithoutContext("DropBeforeEnqueue", Trace([this](Ptr<const Packet>) {
                                              m_arrived += Counts();
                                              Lost("full");
                                          }));
    }

    double Loss() const { return m_arrived ? double(m_lost) / double(m_arrived) : 0; }

    void Report(bool json, const std::string& name, uint32_t packets, double measured)
    {
        Settle();
        std::sort(m_delays.begin(), m_delays.end());
        double sum = 0;
        for (double d : m_delays)
        {
            sum += d;
        }
        bool any = !m_delays.empty();
        auto at = [&](double q) { return any ? Quantile(m_delays, q) : 0; };
        printf(json ? "\"queue\":{\"name\":\"%s\",\"packets\":%u,\"arrived\":%llu,\"lost\":%llu,"
                      "\"full\":%llu,\"marked\":%llu,\"utilisation\":%.6g,\"mean_ms\":%.6g,"
                      "\"p50_ms\":%.6g,\"p95_ms\":%.6g,\"p99_ms\":%.6g}"
                    : "queue %s of %u packets: %llu arrived, %llu lost (%llu for want of room), "
                      "%llu marked, utilisation %.4f\n"
                      "time in it: mean %.4g, median %.4g, 95%% %.4g, 99%% %.4g ms\n",
               name.c_str(),
               packets,
               (unsigned long long)m_arrived,
               (unsigned long long)m_lost,
               (unsigned long long)m_full,
               (unsigned long long)m_marked,
               double(m_bytes) * 8 / (kBottleneckBps * measured),
               any ? sum / double(m_delays.size()) : 0,
               at(0.5),
               at(0.95),
               at(0.99));
    }

    // One CSV line for each packet in order of arrival, but for those still
    // queued at the end; `left_ns` is empty for those lost.
    void Write(const std::string& file) const
    {
        FILE* f = fopen(file.c_str(), "w");
        if (!f)
        {
            fprintf(stderr, "dumbbell: cannot write %s\n", file.c_str());
            exit(1);
        }
        fprintf(f, "arrived_ns,source,source_port,destination,size_bytes,left_ns\n");
        for (const Row& r : m_all)
        {
            if (r.fate == kQueued)
            {
                continue;
            }
            auto at = (long long)r.at;
            fprintf(f, "%lld,%u,%u,%u,%u,", at, r.source, r.port, r.destination, r.size);
            fprintf(f, r.fate == kLost ? "\n" : "%lld\n", (long long)r.fate);
        }
        fclose(f);
    }

  private:
    static constexpr int64_t kQueued = -2, kLost = -1;

    struct Row
    {
        int64_t at;
        uint32_t source, destination, port, size;
        int64_t fate; // when it left, or one of the above
    };

    bool Counts() const { return ns3::Simulator::Now() >= m_from; }

    void Arrived(ns3::Ptr<const ns3::QueueDiscItem> item)
    {
        using namespace ns3;
        m_arrived += Counts();
        if (m_rows)
        {
            auto ip = DynamicCast<const Ipv4QueueDiscItem>(item)->GetHeader();
            TcpHeader tcp;
            item->GetPacket()->PeekHeader(tcp);
            m_queued[PeekPointer(item)] = m_all.size();
            m_all.push_back({Simulator::Now().GetNanoSeconds(),
                             ip.GetSource().Get(),
                             ip.GetDestination().Get(),
                             tcp.GetSourcePort(),
                             item->GetSize(),
                             kQueued});
        }
    }

    void SetFate(ns3::Ptr<const ns3::QueueDiscItem> item, int64_t fate)
    {
        if (m_rows)
        {
            auto i = m_queued.find(ns3::PeekPointer(item));
            m_last = i->second;
            m_all[m_last].fate = fate;
            m_queued.erase(i);
        }
    }

    // A packet has left the queue; whether to be sent or dropped turns out next.
    void Left(ns3::Time delay, uint32_t size)
    {
        Settle();
        if (Counts())
        {
            m_waiting = true;
            m_delay = delay.GetSeconds() * 1e3;
            m_size = size;
        }
    }

    void Settle()
    {
        if (m_waiting)
        {
            m_delays.push_back(m_delay);
            m_bytes += m_size + 2; // of PPP
            m_waiting = false;
        }
    }

    void Lost(const char* why)
    {
        m_lost += Counts();
        // Queue discs give their reason in words.
        for (const char* full : {"full", "limit exceeded", "Overlimit drop", "Forced drop"})
        {
            m_full += Counts() && std::string(why).find(full) != std::string::npos;
        }
    }

    ns3::Time m_from;
    bool m_rows = false, m_waiting = false;
    double m_delay = 0;
    uint32_t m_size = 0;
    uint64_t m_arrived = 0, m_lost = 0, m_full = 0, m_marked = 0, m_bytes = 0;
    std::vector<double> m_delays; // ms
    std::deque<ns3::Time> m_since;
    std::vector<Row> m_all;
    std::unordered_map<const ns3::QueueDiscItem*, size_t> m_queued;
    size_t m_last = 0;
};

#endif
