/* Is loaded and unloaded by stress.cpp; its constructor counts on being checked too. */
static long table[32], loads;

__attribute__((constructor)) static void start(void)
{
    for (int i = 0; i < 32; i++)
        table[i] = i * i;
    loads++;
}

__attribute__((destructor)) static void stop(void)
{
    loads--;
}

long plugin_work(long n)
{
    long sum = loads;
    for (int i = 0; i < 32; i++)
        sum += table[(i + n) & 31] ^ n;
    return sum;
}
