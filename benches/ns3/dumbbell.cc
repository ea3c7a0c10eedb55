// SPDX-License-Identifier: GPL-2.0-only
// ns-3.37 as a peer: TCP transfers with Poisson arrivals and Zipf sizes, or some
// without end, over a dumbbell. See README.md for what is measured and why.
#include "bottleneck.h"
#include "transfers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <memory>
#include <sys/resource.h>
#include <unordered_map>

using namespace ns3;

namespace
{

constexpr uint32_t kPairs = 5;
constexpr double kEarly = 60.0; // s; the loss rate is also reported up to here
constexpr uint32_t kEndless = ~0u; // segments

struct Options
{
    double load = 8, duration = 1000; // Mb/s, s
    uint64_t seed = 1;
    bool json = false;
    bool karn = false;
    std::string flows;
    TcpSettings tcp;
    std::string queue = "droptail";
    bool watch = false; // report the queue: as soon as one is asked for
    uint32_t buffer = 300;
    double delay = 1; // ms, of each link
    uint32_t longs = 0;
    double warmUp = 0; // s
    std::string packets;
};

struct Record
{
    double start;
    uint32_t size;    // segments
    double response;  // s; negative while the transfer is incomplete
};

class Run;

// One transfer while it lives. It is freed when the sender's side has ended,
// one event later: a callback must not destroy itself while it runs.
struct Flow
{
    Run* run;
    size_t record;
    uint64_t key;
    uint32_t toSend; // segments not yet handed to the socket
    uint64_t left;   // bytes which the receiver still misses
    uint64_t before; // the same when the warm-up ended, or at first
    Ptr<Socket> tx, rx;
    bool ended = false;

    void Fill(Ptr<Socket> s, uint32_t room)
    {
        if (toSend == 0)
        {
            return;
        }
        for (; toSend > 0 && room >= kMss; room -= kMss, toSend--)
        {
            if (s->Send(Create<Packet>(kMss)) < 0)
            {
                return;
            }
        }
        if (toSend == 0)
        {
            s->Close(); // the FIN will ride on the last segment
        }
    }

    void Connected(Ptr<Socket> s);
    void Received(Ptr<Socket> s);
    void PeerClosed(Ptr<Socket> s) { s->Close(); }
    void PeerFailed(Ptr<Socket>) {}
    void Closed(Ptr<Socket>);
    void ConnectFailed(Ptr<Socket>);
    void GaveUp(Ptr<Socket>);
};

class Run
{
  public:
    Run(const Options& o)
        : m_o(o),
          m_net(kPairs, o.queue == "droptail" ? o.buffer : 1, o.delay),
          m_sizes(o.seed, 1),
          m_arrivals(o.seed, 2),
          m_pairs(o.seed, 3),
          m_starts(o.seed, 4),
          m_rate(o.load * 1e6 / (m_zipf.mean * 1500 * 8))
    {
        for (uint32_t i = 0; i < kPairs; i++)
        {
            auto l = Socket::CreateSocket(m_net.receivers.Get(i), TcpSocketFactory::GetTypeId());
            l->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
            l->Listen();
            l->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                 MakeCallback(&Run::Accept, this));
            m_listeners.push_back(l);
        }
        if (o.queue != "droptail")
        {
            auto disc = MakeQueueDisc(o.queue, o.buffer, o.tcp.ecn, o.seed);
            Install(m_net.bottleneck, disc);
            m_watch.On(disc, o.warmUp, !o.packets.empty());
        }
        else if (o.watch)
        {
            m_watch.On(m_net.queue, o.warmUp);
        }
    }

    void Go()
    {
        if (m_o.longs == 0)
        {
            Schedule();
        }
        for (uint32_t i = 0; i < m_o.longs; i++)
        {
            // Within a second, so that they do not march in step.
            Simulator::Schedule(Seconds(m_starts()), &Run::Open, this, i % kPairs, i % kPairs,
                                kEndless);
        }
        Simulator::Schedule(Seconds(m_o.warmUp), &Run::WarmedUp, this);
        Simulator::Schedule(Seconds(kEarly), &Run::Early, this);
        Simulator::Stop(Seconds(m_o.duration));
        auto t0 = std::chrono::steady_clock::now();
        Simulator::Run();
        m_wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
        CountBytes();
    }

    void End(Flow* f, uint64_t Run::*counter)
    {
        if (!f->ended)
        {
            f->ended = true;
            this->*counter += 1;
            Simulator::ScheduleNow(&Run::Reap, this, f->key);
        }
    }

    void Report();

    bool Karn() const { return m_o.karn; }

    std::vector<Record> records;
    uint64_t closed = 0, synFailed = 0, dataFailed = 0;

  private:
    static uint64_t Key(const Address& a)
    {
        auto i = InetSocketAddress::ConvertFrom(a);
        return uint64_t(i.GetIpv4().Get()) << 16 | i.GetPort();
    }

    void Schedule()
    {
        Simulator::Schedule(Seconds(-std::log(m_arrivals()) / m_rate), &Run::Start, this);
    }

    void Start()
    {
        Schedule();
        auto from = uint32_t(m_pairs() * kPairs), to = uint32_t(m_pairs() * kPairs);
        Open(from, to, m_zipf(m_sizes()));
    }

    void Open(uint32_t from, uint32_t to, uint32_t size)
    {
        auto f = std::make_unique<Flow>();
        f->run = this;
        f->record = records.size();
        f->toSend = size;
        f->left = uint64_t(size) * kMss;
        f->before = f->left;
        f->tx = Socket::CreateSocket(m_net.senders.Get(from), TcpSocketFactory::GetTypeId());
        Flow* p = f.get();
        p->tx->SetConnectCallback(MakeCallback(&Flow::Connected, p),
                                  MakeCallback(&Flow::ConnectFailed, p));
        p->tx->SetCloseCallbacks(MakeCallback(&Flow::Closed, p), MakeCallback(&Flow::GaveUp, p));
        p->tx->SetSendCallback(MakeCallback(&Flow::Fill, p));
        records.push_back({Simulator::Now().GetSeconds(), size, -1});
        p->tx->Connect(InetSocketAddress(m_net.receiverAddress[to], kPort)); // sends the SYN
        Address local;
        p->tx->GetSockName(local);
        p->key = Key(local);
        NS_ABORT_MSG_IF(!m_live.emplace(p->key, std::move(f)).second, "port used twice");
    }

    void Accept(Ptr<Socket> s, const Address& from)
    {
        auto i = m_live.find(Key(from));
        if (i == m_live.end())
        {
            s->Close();
            return;
        }
        Flow* f = i->second.get();
        f->rx = s;
        s->SetRecvCallback(MakeCallback(&Flow::Received, f));
        s->SetCloseCallbacks(MakeCallback(&Flow::PeerClosed, f),
                             MakeCallback(&Flow::PeerFailed, f));
    }

    void Reap(uint64_t key)
    {
        auto i = m_live.find(key);
        auto none = MakeNullCallback<void, Ptr<Socket>>();
        for (auto s : {i->second->tx, i->second->rx})
        {
            if (s)
            {
                s->SetConnectCallback(none, none);
                s->SetCloseCallbacks(none, none);
                s->SetRecvCallback(none);
                s->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>());
            }
        }
        if (i->second->rx)
        {
            // A sender which gave up leaves its receiver half open for ever.
            // A no-op after an orderly end.
            i->second->rx->Close();
        }
        m_live.erase(i);
    }

    void Early()
    {
        m_earlyLoss = Loss();
        CountBytes();
        Simulator::Schedule(Seconds(kEarly), &Run::Poll, this);
    }

    void Poll()
    {
        CountBytes();
        Simulator::Schedule(Seconds(kEarly), &Run::Poll, this);
    }

    // ns-3 counts bytes in 32 bits: read before they wrap.
    void CountBytes()
    {
        uint32_t now = m_net.queue->GetTotalReceivedBytes();
        m_bytes += uint32_t(now - m_lastBytes);
        m_lastBytes = now;
    }

    void WarmedUp()
    {
        for (auto& [key, f] : m_live)
        {
            f->before = f->left;
        }
    }

    double Loss() const
    {
        if (m_o.queue != "droptail")
        {
            return m_watch.Loss();
        }
        double in = m_net.queue->GetTotalReceivedPackets();
        double lost = m_net.queue->GetTotalDroppedPacketsBeforeEnqueue();
        return in + lost > 0 ? lost / (in + lost) : 0;
    }

    void ReportTransfers() const;
    void ReportLong() const;
    void WriteFlows() const;

    Options m_o;
    Dumbbell m_net;
    Zipf m_zipf;
    Uniform m_sizes, m_arrivals, m_pairs, m_starts;
    Watch m_watch;
    double m_rate; // flows/s
    std::vector<Ptr<Socket>> m_listeners;
    std::unordered_map<uint64_t, std::unique_ptr<Flow>> m_live;
    uint64_t m_bytes = 0;
    uint32_t m_lastBytes = 0;
    double m_earlyLoss = 0, m_wall = 0;
};

void
Flow::Connected(Ptr<Socket> s)
{
    double waited = Simulator::Now().GetSeconds() - run->records[record].start;
    if (run->Karn() && waited >= kConnTimeout)
    {
        // ns-3 took the time since the first SYN for a round trip. Put a new
        // estimator in its place, at 3 s as in RFC 6298, 5.7. The RTO itself
        // is out of reach, but an ACK computes it anew, and a larger receive
        // buffer (of no use to a sender) makes the socket send one.
        auto rtt = CreateObject<RttMeanDeviation>();
        rtt->SetAttribute("InitialEstimation", TimeValue(Seconds(kConnTimeout)));
        rtt->Reset();
        DynamicCast<TcpSocketBase>(s)->SetRtt(rtt);
        s->SetAttribute("RcvBufSize", UintegerValue(65536));
    }
    Fill(s, s->GetTxAvailable());
}

void
Flow::Received(Ptr<Socket> s)
{
    while (Ptr<Packet> p = s->Recv())
    {
        left -= p->GetSize();
    }
    Record& r = run->records[record];
    if (left == 0 && r.response < 0)
    {
        r.response = Simulator::Now().GetSeconds() - r.start;
    }
}

void
Flow::Closed(Ptr<Socket>)
{
    run->End(this, &Run::closed);
}

void
Flow::ConnectFailed(Ptr<Socket>)
{
    run->End(this, &Run::synFailed);
}

void
Flow::GaveUp(Ptr<Socket>)
{
    run->End(this, &Run::dataFailed);
}

void
Run::Report()
{
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    double mib = double(ru.ru_maxrss) / 1024;
    if (m_o.longs > 0)
    {
        ReportLong();
    }
    else
    {
        ReportTransfers();
    }
    if (m_o.watch)
    {
        m_watch.Report(m_o.json, m_o.queue, m_o.buffer, m_o.duration - m_o.warmUp);
        printf(m_o.json ? "," : "");
    }
    printf(m_o.json ? "\"wall_s\":%.3f,\"rss_mib\":%.1f}\n" : "wall %.2f s, peak memory %.1f MiB\n",
           m_wall,
           mib);
    if (!m_o.flows.empty())
    {
        WriteFlows();
    }
    if (!m_o.packets.empty())
    {
        m_watch.Write(m_o.packets);
    }
}

// Goodput of each transfer without end after the warm-up, and Jain's index of them.
void
Run::ReportLong() const
{
    double seconds = m_o.duration - m_o.warmUp;
    std::vector<double> goodput(m_o.longs, 0); // Mb/s; of one which gave up, none
    for (auto& [key, f] : m_live)
    {
        goodput[f->record] = double(f->before - f->left) * 8e-6 / seconds;
    }
    double sum = 0, squares = 0;
    for (double g : goodput)
    {
        sum += g;
        squares += g * g;
    }
    printf(m_o.json ? "{\"simulator\":\"ns-3.37\",\"long\":%u,\"delay_ms\":%g,\"duration_s\":%g,"
                      "\"warm_up_s\":%g,\"seed\":%llu,\"gave_up\":%llu,\"goodput_mbps\":["
                    : "%u without end, %g ms per link, %g s of which %g s warm-up, seed %llu\n"
                      "%llu gave up; goodput",
           m_o.longs,
           m_o.delay,
           m_o.duration,
           m_o.warmUp,
           (unsigned long long)m_o.seed,
           (unsigned long long)(synFailed + dataFailed));
    for (double& g : goodput)
    {
        printf(m_o.json ? "%s%.4g" : "%s %.4g", m_o.json && &g != goodput.data() ? "," : "", g);
    }
    double jain = sum * sum / (double(m_o.longs) * squares);
    printf(m_o.json ? "],\"jain\":%.6g," : " Mb/s, fairness %.4f\n", jain);
}

void
Run::ReportTransfers() const
{
    // What left the queue has left the wire, but for the packet in service.
    double sent = double(m_bytes - m_net.queue->GetNBytes());
    double utilisation = sent * 8 / (kBottleneckBps * m_o.duration);
    const char* form =
        m_o.json ? "%s{\"size\":\"%s\",\"started\":%zu,\"completed\":%zu,\"mean_s\":%s,"
                   "\"median_s\":%s,\"p95_s\":%s}"
                 : "%s%10s  started %6zu  completed %6zu  mean %9s  median %9s  p95 %9s\n";

    printf(m_o.json ? "{\"simulator\":\"ns-3.37\",\"load_mbps\":%g,\"duration_s\":%g,"
                      "\"seed\":%llu,\"classes\":["
                    : "load %g Mb/s, %g s, seed %llu\n",
           m_o.load,
           m_o.duration,
           (unsigned long long)m_o.seed);
    size_t completed = 0;
    for (const Class& c : kClasses)
    {
        std::vector<double> t;
        size_t started = 0;
        double sum = 0;
        for (const Record& r : records)
        {
            if (r.size >= c.low && r.size <= c.high)
            {
                started++;
                if (r.response >= 0)
                {
                    t.push_back(r.response);
                    sum += r.response;
                }
            }
        }
        std::sort(t.begin(), t.end());
        completed += t.size();
        auto show = [&](double x) {
            char b[32];
            snprintf(b, sizeof b, "%.6g", x);
            return t.empty() ? std::string("null") : std::string(b);
        };
        bool any = !t.empty();
        printf(form,
               m_o.json && &c != kClasses ? "," : "",
               c.name,
               started,
               t.size(),
               show(any ? sum / double(t.size()) : 0).c_str(),
               show(any ? Quantile(t, 0.5) : 0).c_str(),
               show(any ? Quantile(t, 0.95) : 0).c_str());
    }
    printf(m_o.json ? "],\"started\":%zu,\"completed\":%zu,\"connect_failed\":%llu,"
                      "\"gave_up\":%llu,\"utilisation\":%.6g,\"loss\":%.6g,\"loss_60s\":%.6g,"
                    : "started %zu, completed %zu, failed to connect %llu, gave up %llu\n"
                      "utilisation %.4f, loss %.5f, in the first 60 s %.5f\n",
           records.size(),
           completed,
           (unsigned long long)synFailed,
           (unsigned long long)dataFailed,
           utilisation,
           Loss(),
           m_o.duration > kEarly ? m_earlyLoss : Loss());
}

void
Run::WriteFlows() const
{
    FILE* f = fopen(m_o.flows.c_str(), "w");
    if (!f)
    {
        fprintf(stderr, "dumbbell: cannot write %s\n", m_o.flows.c_str());
        exit(1);
    }
    fprintf(f, "start_s,size_segments,response_s\n");
    for (const Record& r : records)
    {
        fprintf(f, r.response < 0 ? "%.9f,%u,\n" : "%.9f,%u,%.9f\n", r.start, r.size, r.response);
    }
    fclose(f);
}

[[noreturn]] void
Usage(int code)
{
    fprintf(code ? stderr : stdout,
            "usage: dumbbell [--load MBPS] [--duration S] [--seed N] [--json] [--flows FILE]\n"
            "                [--karn] [--syn-retries N] [--data-retries N]\n"
            "                [--queue droptail|fifo|codel|fqcodel|pie|red|red-wait]\n"
            "                [--buffer PACKETS] [--ecn] [--long N] [--delay MS] [--window BYTES]\n"
            "                [--warm-up S] [--packets FILE]\n");
    exit(code);
}

Options
Parse(int argc, char** argv)
{
    Options o;
    const option longs[] = {{"load", 1, nullptr, 'l'},
                            {"duration", 1, nullptr, 'd'},
                            {"seed", 1, nullptr, 's'},
                            {"json", 0, nullptr, 'j'},
                            {"flows", 1, nullptr, 'f'},
                            {"karn", 0, nullptr, 'k'},
                            {"syn-retries", 1, nullptr, 'S'},
                            {"data-retries", 1, nullptr, 'D'},
                            {"queue", 1, nullptr, 'q'},
                            {"buffer", 1, nullptr, 'b'},
                            {"ecn", 0, nullptr, 'e'},
                            {"long", 1, nullptr, 'n'},
                            {"delay", 1, nullptr, 'p'},
                            {"window", 1, nullptr, 'w'},
                            {"warm-up", 1, nullptr, 'u'},
                            {"packets", 1, nullptr, 'P'},
                            {"help", 0, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
    auto number = [](const char* s) {
        char* end;
        double x = strtod(s, &end);
        if (end == s || *end || !(x >= 0))
        {
            fprintf(stderr, "dumbbell: '%s' is not a number of at least 0\n", s);
            exit(2);
        }
        return x;
    };
    for (int c; (c = getopt_long(argc, argv, "h", longs, nullptr)) != -1;)
    {
        switch (c)
        {
        case 'l': o.load = number(optarg); break;
        case 'd': o.duration = number(optarg); break;
        case 's': o.seed = uint64_t(number(optarg)); break;
        case 'j': o.json = true; break;
        case 'k': o.karn = true; break;
        case 'f': o.flows = optarg; break;
        case 'S': o.tcp.synRetries = uint32_t(number(optarg)); break;
        case 'D': o.tcp.dataRetries = uint32_t(number(optarg)); break;
        case 'q': o.queue = optarg, o.watch = true; break;
        case 'b': o.buffer = uint32_t(number(optarg)); break;
        case 'e': o.tcp.ecn = true; break;
        case 'n': o.longs = uint32_t(number(optarg)); break;
        case 'p': o.delay = number(optarg); break;
        case 'w': o.tcp.window = uint32_t(number(optarg)); break;
        case 'u': o.warmUp = number(optarg); break;
        case 'P': o.packets = optarg; break;
        case 'h': Usage(0);
        default: Usage(2);
        }
    }
    bool disc = o.queue != "droptail";
    if (optind < argc || o.load == 0 || o.duration <= o.warmUp || !IsQueue(o.queue) ||
        o.buffer == 0 || (!o.packets.empty() && !disc))
    {
        Usage(2);
    }
    return o;
}

} // namespace

int
main(int argc, char** argv)
{
    Options o = Parse(argc, argv);
    SetTcpDefaults(o.tcp);
    Run run(o);
    run.Go();
    run.Report();
    // Simulator::Destroy would only tear down what the process's end frees.
    fflush(stdout);
    _Exit(0);
}
