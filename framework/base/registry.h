#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

template <class Signature>
class Registry;

/// Named factories of one kind of thing: Registry<std::shared_ptr<Model>(const SampleSpec&)>.
///
/// A thing registers itself in the last lines of its own .cc file, which needs `alwayslink = True` in its target:
///
///     const bool registered = Models::global().add<MlpConfig>("mlp", "multi-layer perceptron", make_mlp);
///
/// Registration happens before main(); afterwards a registry is only read, from any thread.
template <class Product, class... Args>
class Registry<Product(Args...)> {
 public:
  class Choice;

  static Registry& global() {
    static Registry registry;
    return registry;
  }

  /// Config has defaults and a visit() (framework/base/config/visitor.h); `help` is one line. A Config may name one of
  /// its keys that tells it without a name: static constexpr const char* kTellingKey. Throws std::logic_error when the
  /// name is taken, which ends the program before main().
  template <class Config>
  bool add(const std::string& name, const std::string& help,
           std::type_identity_t<std::function<Product(const Config&, Args...)>> make) {
    Entry entry{help, [make] { return std::make_unique<FactoryOf<Config>>(make); }};
    if constexpr (requires { Config::kTellingKey; }) entry.telling_key = Config::kTellingKey;
    if (!entries_.emplace(name, entry).second) throw std::logic_error("registered twice: " + name);
    return true;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

 private:
  // A config struct together with what makes a product of it.
  class Factory {
   public:
    virtual ~Factory() = default;
    virtual void visit(config::Visitor& visitor) = 0;
    virtual Product make(Args... args) const = 0;
    virtual std::unique_ptr<Factory> clone() const = 0;
  };

  template <class Config>
  class FactoryOf final : public Factory {
   public:
    explicit FactoryOf(std::function<Product(const Config&, Args...)> make) : make_(std::move(make)) {}
    void visit(config::Visitor& visitor) override { config_.visit(visitor); }
    Product make(Args... args) const override { return make_(config_, std::forward<Args>(args)...); }
    std::unique_ptr<Factory> clone() const override { return std::make_unique<FactoryOf>(*this); }

   private:
    std::function<Product(const Config&, Args...)> make_;
    Config config_;
  };

  struct Entry {
    std::string help;
    std::function<std::unique_ptr<Factory>()> factory;
    std::string telling_key{};
  };
  std::map<std::string, Entry> entries_;
};

/// One entry of the global registry with its own config: what a config struct holds for a section such as `model`.
///
///     Models::Choice model{"lenet"};                       // default; without one the section must be written
///     v("model", model, "the network to train");           // in visit()
///     std::shared_ptr<Model> net = config.model.make(spec);
///
/// A value: copies are independent. Naming what is not registered throws std::out_of_range.
template <class Product, class... Args>
class Registry<Product(Args...)>::Choice final : public config::Selection {
 public:
  Choice() = default;
  explicit Choice(const std::string& name) { select(name); }
  Choice(const Choice& other) : name_(other.name_), factory_(other.factory_ ? other.factory_->clone() : nullptr) {}
  Choice& operator=(Choice other) {
    std::swap(name_, other.name_);
    std::swap(factory_, other.factory_);
    return *this;
  }

  std::vector<std::string> names() const override { return Registry::global().names(); }
  std::string help(const std::string& name) const override { return entry(name).help; }
  const std::string& selected() const override { return name_; }
  std::string told_by(const std::string& key) const override {
    for (const auto& [name, entry] : Registry::global().entries_) {
      if (!key.empty() && entry.telling_key == key) return name;
    }
    return "";
  }
  void select(const std::string& name) override {
    factory_ = entry(name).factory();
    name_ = name;
  }
  void visit_selected(config::Visitor& visitor) override {
    if (factory_) factory_->visit(visitor);
  }
  void visit_defaults(const std::string& name, config::Visitor& visitor) const override {
    entry(name).factory()->visit(visitor);
  }

  /// The product, made of the fields as they are now. Throws std::logic_error when nothing is selected.
  Product make(Args... args) const {
    if (!factory_) throw std::logic_error("make() of a choice of which nothing is selected");
    return factory_->make(std::forward<Args>(args)...);
  }

 private:
  static const Entry& entry(const std::string& name) {
    const auto& entries = Registry::global().entries_;
    const auto found = entries.find(name);
    if (found == entries.end()) throw std::out_of_range("nothing is registered as \"" + name + "\"");
    return found->second;
  }

  std::string name_;
  std::unique_ptr<Factory> factory_;
};

}  // namespace phalanx
