/* A library whose code is relocated itself: gcc -fno-pic -mcmodel=large -shared -z notext. */
int counter, table[64], other = 5;
extern int from_main;
int work(int n)
{
    for (int i = 0; i < n; i++) {
        counter++;
        table[i & 63] += other;
        from_main += table[(i + 1) & 63];
    }
    return counter;
}
