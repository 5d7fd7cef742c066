/* Four threads talk to an echo service on the loopback interface; then a process is tried. */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4 };

static struct sockaddr_in address = {.sin_family = AF_INET};
static int listener;

static void* serve(void* unused) {
  for (int served = 0; served < threads; served++) {
    char text[16];
    const int connection = accept(listener, NULL, NULL);
    const ssize_t size = read(connection, text, sizeof(text));
    if (size > 0 && write(connection, text, (size_t)size) != size) perror("echo");
    close(connection);
  }
  return unused;
}

/* NULL if the text came back. */
static void* talk(void* text) {
  char answer[16] = "";
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr*)&address, sizeof(address)) != 0) return text;
  if (write(connection, text, strlen(text)) < 0) return text;
  if (read(connection, answer, sizeof(answer) - 1) < 0) return text;
  close(connection);
  return strcmp(answer, text) == 0 ? NULL : text;
}

static int can_start_a_process(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, NULL, 0) == child;
}

int main(void) {
  char texts[threads][2] = {"0", "1", "2", "3"};
  pthread_t service, talkers[threads];
  socklen_t size = sizeof(address);
  int echoed = 0;

  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof(address)) != 0) return perror("bind"), 1;
  if (getsockname(listener, (struct sockaddr*)&address, &size) != 0) return perror("name"), 1;
  if (listen(listener, threads) != 0) return perror("listen"), 1;

  if (pthread_create(&service, NULL, serve, NULL) != 0) return 1;
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&talkers[i], NULL, talk, texts[i]) != 0) return 1;
  }
  for (int i = 0; i < threads; i++) {
    void* failed = NULL;
    pthread_join(talkers[i], &failed);
    echoed += failed == NULL;
  }
  pthread_join(service, NULL);
  printf("echoed %d, started %d\n", echoed, can_start_a_process());
  return 0;
}
