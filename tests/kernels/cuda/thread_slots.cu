// Scratch of a thread whose slot is computed from the number of the iteration, and tiles that are found like that.

#define SLOTS(NAME, TYPE, SLOT)                                                                       \
    extern "C" __global__ void NAME(int n, const int* a, int* out) {                                  \
        __shared__ int slots[64 * 64];                                                                \
        for (int q = threadIdx.x; q < 64 * 64; q += blockDim.x) slots[q] = 0;                         \
        __syncthreads();                                                                              \
        _Pragma("ccc for block(64)")                                                                  \
        for (TYPE i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {    \
            _Pragma("ccc if")                                                                         \
            if (a[i] & 1) {                                                                           \
                int v = a[i];                                                                         \
                for (int k = 0; k < 9; ++k) v = v * 5 + 1;                                            \
                slots[(SLOT) * 64 + threadIdx.x] += v;                                                \
                out[i] = slots[(SLOT) * 64 + threadIdx.x];                                            \
            }                                                                                         \
        }                                                                                             \
    }

SLOTS(by_a_power_of_two, int, i % 8)
SLOTS(by_a_power_of_two_unsigned, unsigned, i % 8)
SLOTS(by_another_number, int, i % 7)
SLOTS(by_another_number_unsigned, unsigned, i % 7)
SLOTS(by_another_number_in_64_bits, long long, i % 10)
SLOTS(by_hand, int, i - i / 6 * 6)
SLOTS(from_the_end, int, 63 - i % 64)
SLOTS(of_a_multiple, int, (i * 5) % 16)
SLOTS(of_bits, int, (i >> 4) & 7)
SLOTS(of_a_quotient, int, (i / 3) % 5)
SLOTS(of_a_sum, unsigned, (i + (i >> 3)) % 4)

#define TILES(NAME, WIDTH)                                                        \
    extern "C" __global__ void NAME(int n, const int* a, int* out, int w) {       \
        _Pragma("ccc for block(16, 4)")                                           \
        for (int b = blockIdx.x; b < n; b += gridDim.x) {                         \
            int y = b / (WIDTH), x = b % (WIDTH);                                 \
            int p = (y * 4 + threadIdx.y) * (w * 16) + x * 16 + threadIdx.x;      \
            _Pragma("ccc if")                                                     \
            if (a[p] & 1) {                                                       \
                int v = a[p];                                                     \
                for (int k = 0; k < 9; ++k) v = v * 5 + 1;                        \
                out[p] = v;                                                       \
            }                                                                     \
        }                                                                         \
    }

TILES(tiles_in_rows, w)
TILES(tiles_in_rows_of_ten, 10)

#pragma ccc grid
extern "C" __global__ void rows_of_blocks(int n, const int* a, int* out, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int y = i / 10, x = i % 10, p = y * w + x;
#pragma ccc if
    if (a[p] & 1) {
        int v = a[p];
        for (int k = 0; k < 9; ++k) v = v * 5 + 1;
        out[p] = v;
    }
}

extern "C" __global__ void rows_that_end_early(int n, const int* a, int* out, int w) {
#pragma ccc for block(16, 4)
    for (int b = blockIdx.x; b < n; b += gridDim.x) {
        int y = b / w, x = b % w;
        if (a[b] & 2) y = 0;
        int p = (y * 4 + threadIdx.y) * (w * 16) + x * 16 + threadIdx.x;
#pragma ccc if
        if (a[p] & 1) {
            int v = out[p];
            for (int k = 0; k < 9; ++k) v = v * 5 + 1;
            out[p] = v;
        }
    }
}

// Sums in shared memory that a row of the block has for itself: one lane of a warp adds to each.
#define ROWS(NAME, WIDTH, LEADS, SUM)                                                                   \
    extern "C" __global__ void NAME(int n, const int* a, int* out) {                                    \
        __shared__ int sums[64];                                                                        \
        if (LEADS) SUM = 0;                                                                             \
        __syncthreads();                                                                                \
        _Pragma("ccc for block(64)")                                                                    \
        for (int i = threadIdx.y * (WIDTH) + threadIdx.x; i < n; i += (WIDTH) * blockDim.y) {           \
            _Pragma("ccc if")                                                                           \
            if ((LEADS) && (a[i] & 1)) {                                                                \
                int v = a[i];                                                                           \
                for (int k = 0; k < 9; ++k) v = v * 5 + 1;                                              \
                SUM += v;                                                                               \
            }                                                                                           \
        }                                                                                               \
        __syncthreads();                                                                                \
        if (LEADS) out[threadIdx.y] = SUM;                                                              \
    }

ROWS(sums_of_rows, 4, threadIdx.x == 0, sums[threadIdx.y])
ROWS(sums_of_pairs, 4, (threadIdx.x & 1) == 0, sums[threadIdx.y * 2 + threadIdx.x / 2])
ROWS(sums_of_single_threads, 1, true, sums[threadIdx.y])

// Places of a thread that a function finds, which is not inlined.
__device__ __noinline__ void add_at(int* place, int v) {
    for (int k = 0; k < 9; ++k) v = v * 5 + 1;
    *place += v;
}
__device__ __noinline__ void add_in(int* places, int at, int v) {
    for (int k = 0; k < 9; ++k) v = v * 5 + 1;
    places[at] += v;
}
__device__ __noinline__ int drawn(int* state) { return *state = *state * 5 + 1; }
__device__ __noinline__ void add_drawn(int* state, int* place, int v) {
    for (int k = 0; k < 9; ++k) v = v * 5 + drawn(state);
    *place = v;
}

#define CALLS(NAME, CALL)                                                                             \
    extern "C" __global__ void NAME(int n, const int* a, int* out) {                                  \
        int thread = blockIdx.x * blockDim.x + threadIdx.x;                                           \
        _Pragma("ccc for block(64)")                                                                  \
        for (int i = thread; i < n; i += gridDim.x * blockDim.x) {                                    \
            _Pragma("ccc if")                                                                         \
            if (a[i] & 1) CALL;                                                                       \
        }                                                                                             \
    }

CALLS(called_with_an_address, add_at(out + n + thread, a[i]))
CALLS(called_with_an_index, add_in(out + n, thread, a[i]))
CALLS(called_with_the_state_of_a_generator, add_drawn(out + n + thread, out + i, a[i]))
CALLS(called_with_a_place_of_the_iteration, add_in(out, i, a[i] + thread))

// The distance from lane to lane is unknown in both numbers whose difference is the slot.
extern "C" __global__ void __launch_bounds__(256) by_a_row_of_seven(int trips, const unsigned* a, unsigned* out) {
    __shared__ unsigned slots[2048];
    unsigned linear = threadIdx.y * blockDim.x + threadIdx.x, size = blockDim.x * blockDim.y;
    for (unsigned q = linear; q < 2048; q += size) slots[q] = 0;
    __syncthreads();
#pragma ccc for
    for (int turn = 0; turn < trips; turn++) {
        unsigned at = (blockIdx.x * size + linear) * (unsigned)trips + (unsigned)turn;
        long long row = ((long long)at - (long long)at % 7) / 7;
        unsigned x = a[at];
#pragma ccc if
        if (x & 1) {
            for (int k = 0; k < 9; ++k) x = x * 5 + 1;
            unsigned slot = (linear * 8 + ((unsigned)row % 3 & 7)) & 2047;
            slots[slot] = slots[slot] * 3 + x;
            out[at] = slots[slot];
        }
    }
}

extern "C" __global__ void by_a_distance(int n, const int* a, int* out, int w) {
    __shared__ int slots[64 * 64];
    for (int q = threadIdx.x; q < 64 * 64; q += blockDim.x) slots[q] = 0;
    __syncthreads();
    int j = threadIdx.x & 3;
#pragma ccc for block(64)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += w, j += w) {
#pragma ccc if
        if (a[i] & 1) {
            int v = a[i];
            for (int k = 0; k < 9; ++k) v = v * 5 + 1;
            int slot = (i - j) * 64 + threadIdx.x;
            slots[slot] += v;
            out[i] = slots[slot];
        }
    }
}
