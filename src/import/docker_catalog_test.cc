#include "import/docker_catalog.h"

#include <gtest/gtest.h>

#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::has_loss;
using support::outcome;
using support::read_yaml;

TEST(DockerCatalog, IsReadAsItSays) {
  const support::ImportCase cases[] = {
      {"{image: x, allowHosts: ['a.example.com:443', b.example.com]}",
       "net:connect:a.example.com:443 net:connect:b.example.com"},
      {"{image: x, disableNetwork: true, allowHosts: ['a.example.com:443']}", ""},
      {"{image: x, disableNetwork: True, allowHosts: ['a.example.com:443']}", ""},
      {"{image: x, disableNetwork: FALSE, allowHosts: ['a.example.com:443']}",
       "net:connect:a.example.com:443"},
      {"{image: x}", ""},
      {"{image: x, allowHosts: ['localhost:80', '127.0.0.1:80']}", ""},
      {"{image: x, volumes: ['/srv/a:/a', '/srv/b:/b:ro', 'named:/c']}",
       "fs:read:/srv/b fs:write:/srv/a"},
      {"{image: x, volumes: ['{{a.path}}:/a', '{{a.path}}/sub:/b:ro']}",
       "fs:read:${A_PATH}/sub fs:write:${A_PATH}"},
      {"{image: x, volumes: ['{{a.paths|volume|into}}']}", "fs:write:${A_PATHS}"},
      {"{image: x, volumes: ['{{a.path|volume}}']}", "fs:write:${A_PATH}"},
      // Without a target it is the container's own.
      {"{image: x, volumes: ['/srv/data', '{{a.path}}', '{{a.b}}{{a.c|volume}}', ./x]}", ""},
      {"{image: x, volumes: ['./x:/x']}", "fs:write:${WORKING_DIRECTORY}/x"},
      {"{image: x, volumes: ['/srv/a:/a:ro,z', '/srv/b:/b:rw']}", "fs:read:/srv/a fs:write:/srv/b"},
      {"{image: x, env: [{name: AWS_SECRET_ACCESS_KEY, value: unused}, {name: REGION, value: eu}, "
       "{name: OWN_TOKEN, value: '{{a.token}}'}, {name: OTHER_TOKEN}, {name: EMPTY_TOKEN, value: "
       "''}]}",
       "env:read:OTHER_TOKEN env:read:OWN_TOKEN env:read:REGION"},
      {"{image: x, volumes: ['{{a.x|or:[]}}:/b']}", ""},
      {"{image: x, allowHosts: ['{{a.host}}:443']}", "net:connect:${A_HOST}:443"},
      {"{image: x, secrets: [{name: a.b, env: TOKEN}], env: [{name: LANG_OF, value: en}]}",
       "env:inject:TOKEN env:read:LANG_OF"},
      {"{image: x, oauth: {providers: [{provider: p, secret: s, env: P_TOKEN}]}}",
       "env:inject:P_TOKEN"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(outcome(read_yaml(read_docker_catalog, text), text), expected) << text;
  }
}

TEST(DockerCatalog, WhatItCannotMeanIsAMistakeWithItsPlace) {
  const support::ImportCase cases[] = {
      {"[]", "IMPORT_SHAPE '[]': a catalog is a mapping"},
      {"{version: 9, registry: {a: {image: x}}}", "IMPORT_VERSION '9'"},
      {"{registry: {}}", "IMPORT_SHAPE '': there is no server in it"},
      {"{registry: {a: 1}}", "IMPORT_SHAPE '1': an entry is a mapping"},
      {"{registry: {a: {image: x}, b: {image: y}}}", "IMPORT_SHAPE '': there are 2 of them"},
      {"{type: remote, image: x}", "IMPORT_REFUSED 'remote': the server runs elsewhere"},
      {"{image: x, remote: {url: 'https://x'}}", "IMPORT_REFUSED"},
      {"{type: poci, image: x}", "IMPORT_REFUSED 'poci': each tool is a container"},
      {"{image: x, policy: {allowed: false}}", "IMPORT_REFUSED '{allowed: false}'"},
      {"{image: x, tools: [{name: a, container: {image: y}}]}", "IMPORT_REFUSED '{image: y}'"},
      {"{image: x, privileged: true}", "IMPORT_SHAPE 'privileged': an entry has no"},
      {"{image: x, volumes: ['/var/run/docker.sock:/var/run/docker.sock']}",
       "IMPORT_REFUSED '/var/run/docker.sock:/var/run/docker.sock': this socket controls"},
      {"{image: x, volumes: ['/:/host']}", "CAP_SCOPE_REFUSED '/:/host'"},
      {"{image: x, volumes: ['/srv/a:/a:readonly']}",
       "IMPORT_SHAPE '/srv/a:/a:readonly': \"readonly\" is no option of a volume"},
      {"{image: x, volumes: ['/srv/a:/a:RO']}", "IMPORT_SHAPE '/srv/a:/a:RO': \"RO\" is no option"},
      {"{image: x, volumes: ['/srv/a:/a:rw,']}", "IMPORT_SHAPE '/srv/a:/a:rw,': \"\" is no option"},
      {"{image: x, volumes: ['/srv/a:/a:']}", "IMPORT_SHAPE '/srv/a:/a:': a volume is"},
      {"{image: x, volumes: ['/srv/a:']}", "IMPORT_SHAPE '/srv/a:': a volume is"},
      {"{image: x, volumes: ['${HOME}:/h']}",
       "IMPORT_SHAPE '${HOME}:/h': volumes has no variables"},
      {"{image: x, secrets: [{name: a, env: 'A?to=x'}]}", "CAP_ENV_NAME 'A?to=x'"},
      {"{image: x, env: [{name: LD_PRELOAD}]}", "CAP_NEEDS_UNSAFE 'LD_PRELOAD'"},
      {"{image: x, allowHosts: ['https://a.example.com']}", "CAP_NET"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(outcome(read_yaml(read_docker_catalog, text), text).starts_with(expected))
        << text << "\n"
        << outcome(read_yaml(read_docker_catalog, text), text);
  }
}

TEST(DockerCatalog, LossesAreTold) {
  EXPECT_TRUE(has_loss(read_yaml(read_docker_catalog, "{image: x, volumes: [/srv/data]}"),
                       Loss::Kind::dropped, "volumes"));
  EXPECT_TRUE(
      has_loss(read_yaml(read_docker_catalog, "{image: x, env: [{name: A_TOKEN, value: x}]}"),
               Loss::Kind::dropped, "env"));
  EXPECT_TRUE(has_loss(read_yaml(read_docker_catalog, "{image: x, env: [{name: A, value: x}]}"),
                       Loss::Kind::assumed, "env"));
}

TEST(DockerCatalog, SeveralEntriesAreChosenByName) {
  const std::string text = "{registry: {a: {image: x, tools: [{name: t}]}, b: {image: y}}}";
  const auto read = read_yaml(read_docker_catalog, text, "a");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "a");
  ASSERT_EQ(read->tools.size(), 1U);
  EXPECT_TRUE(read->tools.front().capabilities.empty());
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "allowHosts"));
  EXPECT_FALSE(read_yaml(read_docker_catalog, text, "c"));
}

}  // namespace
}  // namespace capgate::imports
