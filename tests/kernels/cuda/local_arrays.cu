// Kernels with arrays of the thread that live across the point at which a token waits, and what becomes of them:
// `right`, or the code that they are refused with.

#define ARGUMENTS int n, const unsigned* __restrict__ a, unsigned* out, unsigned* count
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x

__device__ __forceinline__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int q = 0; q < 5; ++q) x = x * 1664525u + (x >> 7);
  return x;
}

// right: n-queens with the board in bytes
extern "C" __global__ void __launch_bounds__(64) queens(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    const int N = 4;
    char board[N];
    for (int k = 0; k < N; ++k) board[k] = -1;
    board[0] = a[i & 1023] % N;
    unsigned found = 0, steps = 0;
    int row = 1;
#pragma ccc while
    while (row > 0) {
      int column = board[row] + 1;
      for (; column < N; ++column) {
        int r = 0;
        while (r < row && board[r] != column && abs(board[r] - column) != row - r) ++r;
        if (r == row) break;
      }
      ++steps;
      board[row] = column == N ? -1 : column;
      if (column == N) --row;
      else if (row == N - 1) ++found;
      else ++row;
    }
    out[i] = found;
    count[i & 1023] = steps;
  }
}

// right: a traversal whose stack is filled where data says
extern "C" __global__ void __launch_bounds__(64) traversal(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned s = 0, stack[16];
    int top = 0;
    stack[top++] = a[i & 1023] & 1023;
#pragma ccc while
    while (top > 0) {
      unsigned node = stack[--top], h = work(node);
      s += node * 3;
      if (top < 14) {
        if ((h & 3) == 1) stack[top++] = node >> 1;
        if ((h & 12) == 4) stack[top++] = node >> 2;
      }
    }
    out[i] = s;
  }
}

// right: a thread has one task, and the stack is that of the kernel; a path is in the loop
#pragma ccc grid
extern "C" __global__ void __launch_bounds__(64) task(ARGUMENTS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned stack[12];
  if (i >= n) return;
  unsigned s = 0;
  int top = 0;
  stack[top++] = a[i & 1023] & 255;
#pragma ccc while
  while (top > 0) {
    unsigned node = stack[--top];
#pragma ccc if
    if (node & 1) {
      s += work(node + s);
      if (top < 10 && (node & 2)) { stack[top++] = node >> 1; stack[top++] = node >> 2; }
    } else if (node > 8) {
      stack[top++] = node >> 3;
    }
    s ^= node;
  }
  out[i] = s;
}

// right: a small array is sorted
extern "C" __global__ void __launch_bounds__(64) sorted(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned v[6];
    int m = 0;
    for (int k = 0; k < 6; ++k) {
      unsigned y = a[(i + 97 * k) & 1023];
      if (y & 3) v[m++] = y >> 8;
    }
#pragma ccc if
    if (m & 1) {
      for (int p = 1; p < m; ++p) {
        unsigned y = v[p];
        int q = p - 1;
        for (; q >= 0 && v[q] > y; --q) v[q + 1] = v[q];
        v[q + 1] = y;
      }
      out[i] = v[m / 2];
    }
  }
}

struct State { unsigned long long words[3]; unsigned at; };
__device__ __forceinline__ unsigned draw(State* state) {
  state->at = (state->at + 1) % 3;
  unsigned long long& word = state->words[state->at];
  word = word * 6364136223846793005ull + 1442695040888963407ull;
  return unsigned(word >> 33);
}

// right: a generator whose state is handed on by its address, before the path, in it and after it
extern "C" __global__ void __launch_bounds__(64) generator(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    State state;
    for (int k = 0; k < 3; ++k) state.words[k] = a[i & 1023] + k;
    state.at = i;
    unsigned s = draw(&state);
#pragma ccc if
    if (s & 1 << 20) {
      for (unsigned k = 0; k < (s >> 28); ++k) s ^= draw(&state);
    }
    out[i] = s + draw(&state);
  }
}

// right: nine bytes, of no more than their own alignment
extern "C" __global__ void __launch_bounds__(64) bytes(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned char masks[9];
    unsigned x = a[i & 1023];
    for (int k = 0; k < 9; ++k) masks[k] = 0;
    for (unsigned k = 0; k < (x & 15); ++k) masks[(x >> k) % 9] |= 1 << (k & 7);
#pragma ccc if
    if (x & 64) {
      for (unsigned k = 0; k < (x >> 29); ++k) masks[(x + k) % 9] += k;
      out[i] = masks[x % 9] + 256 * masks[(x >> 3) % 9];
    }
  }
}

// right: a pointer into the array waits with it, and so does one that may point to global memory
extern "C" __global__ void __launch_bounds__(64) pointers(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned v[8], x = a[i & 1023];
    for (int k = 0; k < 8; ++k) v[k] = x >> k;
    unsigned* p = v + (x & 3);
    const unsigned* q = x & 32 ? v + 4 : a + (x & 7);
#pragma ccc while
    while (p < v + 7) {
      *p = work(*p + x) ^ *q;
      p += 1 + (*p & 1);
    }
    count[i & 1023] = v[x >> 29] + v[4];
  }
}

// right: the array is declared before the loop, and each iteration fills it, in each of two runs of the loop
extern "C" __global__ void __launch_bounds__(64) twice(ARGUMENTS) {
  unsigned v[4];
  for (int run = 0; run < 2; ++run) {
#pragma ccc for
    for (EACH) {
      unsigned x = a[(i + run) & 1023];
      v[0] = x; v[1] = x >> 3; v[2] = x >> 5; v[3] = run;
      v[x & 3] += 7;
#pragma ccc if
      if (x & 4) v[(x >> 4) & 3] = work(x);
      out[i] += v[(x >> 7) & 3] + v[(x >> 9) & 3];
    }
  }
}

// right: nothing of what the path alone uses waits, however large
extern "C" __global__ void __launch_bounds__(64) path_alone(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 4) {
      unsigned v[50];
      for (unsigned k = 0; k < 50; ++k) v[k] = 0;
      for (unsigned k = 0; k < (x >> 28); ++k) v[(x >> k) % 50] += k;
      out[i] = v[x % 50];
    }
    count[i & 1023] += out[i];
  }
}

// CCC104: 320 bytes
extern "C" __global__ void __launch_bounds__(64) large(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned s = 0, stack[80];
    int top = 0;
    stack[top++] = a[i & 1023];
#pragma ccc while
    while (top > 0) {
      unsigned node = stack[--top];
      s += node;
      if ((node & 3) && top < 62) { stack[top++] = node >> 1; stack[top++] = node >> 3; }
    }
    out[i] = s;
  }
}

// CCC104: the state goes from one iteration to the next
extern "C" __global__ void __launch_bounds__(64) handed_on(ARGUMENTS) {
  unsigned v[4];
  for (int k = 0; k < 4; ++k) v[k] = threadIdx.x + k;
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
    v[x & 3] += x;
#pragma ccc if
    if (x & 4) out[i] = work(v[(x >> 3) & 3]);
    count[i & 1023] += v[(x >> 5) & 3];
  }
}

// CCC104: tasks read what their lane has stored before the loop
extern "C" __global__ void __launch_bounds__(64) table(ARGUMENTS) {
  unsigned v[4];
  for (int k = 0; k < 4; ++k) v[k] = a[threadIdx.x + k];
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
#pragma ccc if
    if (x & 4) out[i] = work(v[(x >> 3) & 3]);
    count[i & 1023] += out[i];
  }
}

// CCC104: code after the loop reads what iterations have stored
extern "C" __global__ void __launch_bounds__(64) left_over(ARGUMENTS) {
  unsigned v[4] = {};
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
    v[0] = x; v[1] = x >> 3; v[2] = x >> 5; v[3] = i;
    v[x & 3] += 7;
#pragma ccc if
    if (x & 4) out[i] = work(v[(x >> 3) & 3]);
    count[i & 1023] += out[i];
  }
  count[threadIdx.x] += v[threadIdx.x & 3];
}

__device__ __noinline__ void fill(unsigned* v, unsigned x) {
  for (int k = 0; k < 4; ++k) v[k] = x >> k;
}

// CCC104: the address of the array goes to a function
extern "C" __global__ void __launch_bounds__(64) by_address(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned v[4], x = a[i & 1023];
    fill(v, x);
#pragma ccc if
    if (x & 4) out[i] = work(v[(x >> 3) & 3]);
    count[i & 1023] += out[i];
  }
}

__device__ __noinline__ void loop(ARGUMENTS, unsigned* v) {
#pragma ccc for
  for (EACH) {
    unsigned x = a[i & 1023];
    v[i] += x;
#pragma ccc if
    if (x & 4) out[i] = work(v[i]);
  }
}

// right: the loop is in a function of its own
extern "C" __global__ void __launch_bounds__(64) of_memory(ARGUMENTS) {
  loop(n, a, out, count, count);
}

__device__ __noinline__ void loop_with_array(ARGUMENTS) {
#pragma ccc for
  for (EACH) {
    unsigned v[4], x = a[i & 1023];
    for (int k = 0; k < 4; ++k) v[k] = x >> k;
#pragma ccc if
    if (x & 4) v[x & 3] = work(x);
    out[i] = v[(x >> 3) & 3];
  }
}

// CCC104: the loop is in a function of its own, and so is the array
extern "C" __global__ void __launch_bounds__(64) of_function(ARGUMENTS) {
  loop_with_array(n, a, out, count);
}

// CCC042: the loop is in a function that has the address of its caller's array
extern "C" __global__ void __launch_bounds__(64) of_caller(ARGUMENTS) {
  unsigned v[1024] = {};
  loop(n, a, out, count, threadIdx.x & 1 ? v : count);
}
