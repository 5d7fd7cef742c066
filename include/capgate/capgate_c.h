/* libcapgate for C, and for every language that can call C: one function, JSON in and JSON out.
 *
 *   size_t length = 0;
 *   char* answer = capgate_call(request, strlen(request), &length);
 *   if (answer != NULL) fwrite(answer, 1, length, stdout);
 *   capgate_free(answer);
 *
 * A request is an object. Unknown keys are refused, so that a misspelt option is not left out.
 *
 *   "operation"  "compile" (default), "check", "parse" or "targets"
 *   "manifest"   the text of a manifest, JSON or YAML; needed by all but "targets"
 *   "name"       for diagnostics; .json, .yaml or .yml at its end says the syntax
 *   "target"     for "compile"; default "bwrap"
 *   "pretty"     indent the answer
 *   "options"    {"tool": TEXT, "variables": {NAME: TEXT or [TEXT...]}, "seal": BOOLEAN,
 *                 "validators": {ID: TEXT}, "programs": [PATH...],
 *                 "acceptUnenforced": [CAPABILITY...], "user": "UID:GID",
 *                 "writableRoot": BOOLEAN, "arch": "x86_64" or "aarch64"}
 *
 * The answer is one of
 *
 *   {"ok":true,"artifact":ARTIFACT}                  compile: as `capgate compile` prints it
 *   {"ok":true,"policy":{"hash":...,"capabilities":[...]}}                            check
 *   {"ok":true,"manifest":{"name":...,"version":...,"tools":[...],"variables":[...]}}  parse
 *   {"ok":true,"targets":[{"name":...,"summary":...}...]}                           targets
 *   {"ok":false,"diagnostics":[{"code":...,"message":...,"help":...,"file":...,"line":...,
 *                               "column":...}...]}   line and column only if it stands in the text
 *
 * All functions may be called from any thread at any time. None of them reads a file, a variable of
 * the environment or a clock, and none keeps anything of a request.
 */
#ifndef CAPGATE_CAPGATE_C_H
#define CAPGATE_CAPGATE_C_H

#include <stddef.h>

#ifndef CAPGATE_API
#define CAPGATE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0", of the library that is linked. It is never freed. */
CAPGATE_API const char* capgate_version(void);

/* `request` has `length` bytes, which are UTF-8 and need no NUL at their end; NULL is an empty
 * request. The answer is UTF-8, ends with a NUL that is not counted, and belongs to the caller, who
 * gives it back with capgate_free. `answer_length` may be NULL. NULL is returned only when there is
 * no memory for an answer. */
CAPGATE_API char* capgate_call(const char* request, size_t length, size_t* answer_length);

/* Frees an answer, once. NULL is allowed. */
CAPGATE_API void capgate_free(char* answer);

#ifdef __cplusplus
}
#endif

#endif
