/* compile MANIFEST [TARGET]: asks libcapgate, and prints its whole answer. */
#include <capgate/capgate_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends `text` to `to` as a JSON string, and returns where it ends. */
static char* quote(char* to, const char* text) {
  *to++ = '"';
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') *to++ = '\\';
    to += c < 0x20 ? sprintf(to, "\\u%04x", (unsigned)c) : sprintf(to, "%c", c);
  }
  *to++ = '"';
  return to;
}

static char* read_text(const char* path) {
  const size_t most = (size_t)1 << 20;
  char* text = calloc(1, most + 1);
  FILE* file = fopen(path, "rb");
  if (text == NULL || file == NULL) exit(2);
  const size_t length = fread(text, 1, most, file);
  fclose(file);
  text[length] = '\0';
  return text;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char* manifest = read_text(argv[1]);
  const char* target = argc > 2 ? argv[2] : "bwrap";
  /* A byte of text becomes at most six of JSON. */
  char* request = malloc(6 * (strlen(manifest) + strlen(argv[1]) + strlen(target)) + 64);
  if (request == NULL) return 2;
  char* end = quote(request + sprintf(request, "{\"manifest\":"), manifest);
  end = quote(end + sprintf(end, ",\"name\":"), argv[1]);
  end = quote(end + sprintf(end, ",\"target\":"), target);
  *end++ = '}';

  size_t length = 0;
  char* answer = capgate_call(request, (size_t)(end - request), &length);
  if (answer == NULL) return 1;
  fwrite(answer, 1, length, stdout);
  putchar('\n');
  const int status = strncmp(answer, "{\"ok\":true", 10) == 0 ? 0 : 1;
  capgate_free(answer);
  free(request);
  free(manifest);
  return status;
}
