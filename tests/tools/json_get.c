/* Prints values of a JSON file, for the script tests:
 *
 *   json_get FILE PATH            one value, for example of modules.0.path
 *   json_get FILE PATH FIELD...   of each entry of the array at PATH one line with the values at these paths, by tabs
 *
 * Strings are printed bare, arrays and objects as their number of entries, what is not there as nothing. Exit code 1: there
 * is nothing at PATH; 2: the file is not JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *find(json_t *at, const char *path)
{
    while (at && *path) {
        char key[128];
        size_t len = strcspn(path, ".");
        if (len >= sizeof key) return NULL;
        memcpy(key, path, len);
        key[len] = 0;
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10)) : json_object_get(at, key);
        path += len + (path[len] == '.');
    }
    return at;
}

static void print(json_t *value)
{
    if (json_is_string(value))
        fputs(json_string_value(value), stdout);
    else if (json_is_array(value))
        printf("%zu", json_array_size(value));
    else if (json_is_object(value))
        printf("%zu", json_object_size(value));
    else if (value)
        json_dumpf(value, stdout, JSON_ENCODE_ANY);
}

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc < 3) return 2;
    json_t *top = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (!top) {
        fprintf(stderr, "json_get: %s:%d: %s\n", argv[1], error.line, error.text);
        return 2;
    }
    json_t *at = find(top, argv[2]), *entry;
    size_t i;
    int code = at ? 0 : 1;
    if (argc == 3 && at) {
        print(at);
        putchar('\n');
    }
    if (argc > 3) json_array_foreach(at, i, entry)
    {
        for (int k = 3; k < argc; k++) {
            print(find(entry, argv[k]));
            putchar(k + 1 < argc ? '\t' : '\n');
        }
    }
    json_decref(top);
    return code;
}
