#include "core/unsealable.h"

namespace capgate::core {
namespace {

constexpr std::string_view signs = "it signs requests and is never sent itself";
constexpr std::string_view signed_along =
    "it is sent as part of what a signature covers, which a changed value would break";
constexpr std::string_view names_file = "it names a file, and the file would hold the secret";
constexpr std::string_view logs_in = "it is used for a login that is not HTTP";

struct Entry {
  std::string_view name;  // with a leading '*': the end of a name, or a whole one without its '_'
  std::string_view reason;
};

constexpr Entry table[] = {
    // Signature Version 4 of AWS, and the services that took it over.
    {"*_SECRET_ACCESS_KEY", signs},
    {"*_ACCESS_KEY_SECRET", signs},
    {"AWS_SECRET_KEY", signs},
    {"AWS_SESSION_TOKEN", signed_along},
    {"AWS_SECURITY_TOKEN", signed_along},
    {"MINIO_SECRET_KEY", signs},
    {"MINIO_ROOT_PASSWORD", signs},
    {"S3_SECRET_KEY", signs},
    // Shared keys of other clouds.
    {"AZURE_STORAGE_ACCOUNT_KEY", signs},
    {"AZURE_STORAGE_CONNECTION_STRING", signs},
    {"AZURE_STORAGE_KEY", signs},
    {"TENCENTCLOUD_SECRET_KEY", signs},
    // Private keys, and what wraps one.
    {"*_MNEMONIC", signs},
    {"*_PRIVATE_KEY", signs},
    {"*_PRIVATE_KEY_BASE64", signs},
    {"*_PRIVATE_KEY_PEM", signs},
    {"*_SERVICE_ACCOUNT_JSON", signs},
    {"*_SERVICE_ACCOUNT_KEY", signs},
    {"*_SSH_KEY", signs},
    {"GOOGLE_CREDENTIALS", signs},
    {"GOOGLE_SERVICE_ACCOUNT", signs},
    // Keys of message authentication codes, tokens that are made on the spot, OAuth 1.
    {"*_CONSUMER_SECRET", signs},
    {"*_HMAC_KEY", signs},
    {"*_HMAC_SECRET", signs},
    {"*_JWT_SECRET", signs},
    {"*_SIGNING_KEY", signs},
    {"*_SIGNING_SECRET", signs},
    {"*_TOKEN_SECRET", signs},
    {"*_WEBHOOK_SECRET", signs},
    {"BINANCE_API_SECRET", signs},
    {"BINANCE_SECRET_KEY", signs},
    {"COINBASE_API_SECRET", signs},
    {"KRAKEN_API_SECRET", signs},
    // Names of files.
    {"*_FILE", names_file},
    {"*_PATH", names_file},
    {"GOOGLE_APPLICATION_CREDENTIALS", names_file},
    {"KUBECONFIG", names_file},
    // Databases.
    {"*_DATABASE_URL", logs_in},
    {"*_DSN", logs_in},
    {"MONGODB_URI", logs_in},
    {"MYSQL_PASSWORD", logs_in},
    {"PGPASSWORD", logs_in},
    {"POSTGRES_PASSWORD", logs_in},
    {"REDIS_URL", logs_in},
};

bool fits(std::string_view pattern, std::string_view name) {
  if (!pattern.starts_with('*')) return name == pattern;
  return name.ends_with(pattern.substr(1)) || name == pattern.substr(2);
}

}  // namespace

std::optional<std::string_view> why_unsealable(std::string_view variable) {
  for (const Entry& entry : table) {
    if (fits(entry.name, variable)) return entry.reason;
  }
  return {};
}

}  // namespace capgate::core
