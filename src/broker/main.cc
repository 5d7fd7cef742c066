// capgate-broker: the way out of one sandbox. Started by capgate, not by people (egress/wire.h).
#include "broker/run.h"

int main(int count, char** arguments) {
  return capgate::broker::main_of_broker(count, arguments, {});
}
