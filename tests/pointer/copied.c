/* A program and a library of its own that share variables and functions by name: the program, at a fixed address, has copies of
 * the library's variables, which the library then uses too, and its definition of a function is also the library's. Each access
 * is to an object that the analysis of both together has to find. Built twice by tests/pointer/test_oracle.sh: with -DLIBRARY
 * as the library. */
extern int shared_number;
extern const char *const shared_words[3];
extern char *shared_place;
char *overridden(void);
void library_writes(char *to);
int library_reads(int n);
int library_calls(void);

#ifdef LIBRARY
int shared_number = 3;
const char *const shared_words[3] = {"first", "second", "third"};
char *shared_place;
static char own[4];

char *overridden(void)
{
    return own;
}

void library_writes(char *to)
{
    shared_place = to;
    shared_number++;
}

int library_reads(int n)
{
    return shared_words[n][0] + *shared_place;
}

int library_calls(void)
{
    *overridden() = 1;
    return own[0];
}
#else
static char kept[16], place[4];

char *overridden(void)
{
    return place;
}

int main(int argc, char **argv)
{
    (void)argv;
    library_writes(kept);
    *shared_place = 2;
    int sum = shared_words[argc][0] + shared_number + library_reads(argc);
    return library_calls() || place[0] != 1 || sum != 's' + 4 + 's' + 2;
}
#endif
