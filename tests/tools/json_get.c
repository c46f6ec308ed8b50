/* Prints one value of a JSON file: json_get FILE modules.0.path. For the script tests; 1 when there is no such value,
 * 2 when the file is not JSON. Strings are printed bare, arrays and objects as their number of entries. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc != 3) return 2;
    json_t *top = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (!top) {
        fprintf(stderr, "json_get: %s:%d: %s\n", argv[1], error.line, error.text);
        return 2;
    }
    json_t *at = top;
    for (char *key = strtok(argv[2], "."); key && at; key = strtok(NULL, "."))
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10)) : json_object_get(at, key);
    if (!at) return 1;
    if (json_is_string(at))
        puts(json_string_value(at));
    else if (json_is_array(at))
        printf("%zu\n", json_array_size(at));
    else if (json_is_object(at))
        printf("%zu\n", json_object_size(at));
    else {
        json_dumpf(at, stdout, JSON_ENCODE_ANY);
        putchar('\n');
    }
    json_decref(top);
    return 0;
}
