// SPDX-License-Identifier: GPL-2.0-only
// What dumbbell.cc draws: sizes, times and hosts of transfers. The example
// crosscheck_aqm draws the same ones again (transfers.rs there).
#ifndef TIDEGATE_NS3_TRANSFERS_H
#define TIDEGATE_NS3_TRANSFERS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

constexpr uint32_t kMinSize = 6, kMaxSize = 6849; // segments
constexpr double kZipf = 1.99345;

struct Class
{
    uint32_t low, high;
    const char* name;
};
constexpr Class kClasses[] = {{6, 6, "6"},           {7, 10, "7-10"},
                              {11, 20, "11-20"},     {21, 50, "21-50"},
                              {51, 200, "51-200"},   {201, 1000, "201-1000"},
                              {1001, ~0u, "1001+"}};

// Sizes, arrivals and pairs each have their own generator, so that a change of
// load leaves the sequence of sizes alone. Only raw 64-bit outputs are used:
// the standard fixes those, not what its distributions make of them.
struct Uniform
{
    std::mt19937_64 g;

    Uniform(uint64_t seed, uint64_t stream)
    {
        std::seed_seq s{uint32_t(seed), uint32_t(seed >> 32), uint32_t(stream)};
        g.seed(s);
    }

    double operator()() // (0, 1)
    {
        return (double(g() >> 11) + 0.5) * 0x1p-53;
    }
};

struct Zipf
{
    std::vector<double> cdf;
    double mean = 0;

    Zipf()
    {
        double sum = 0;
        for (uint32_t k = kMinSize; k <= kMaxSize; k++)
        {
            double p = std::pow(k, -kZipf);
            mean += k * p;
            cdf.push_back(sum += p);
        }
        mean /= sum;
        for (double& c : cdf)
        {
            c /= sum;
        }
    }

    uint32_t operator()(double u) const
    {
        auto i = std::lower_bound(cdf.begin(), cdf.end(), u) - cdf.begin();
        return kMinSize + std::min<uint32_t>(i, kMaxSize - kMinSize);
    }
};

#endif
