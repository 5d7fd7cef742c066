// Runs a Python program in place of capgate-broker: a script itself cannot be run by descriptor.
#include <unistd.h>

int main(void) {
  execl("/usr/bin/python3", "python3", "-I", "-S", SCRIPT, (char*)0);
  return 127;
}
