// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
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

/// Traits of registries whose users need to know nothing about a product before it is made.
struct NoTraits {};

template <class Signature, class Traits = NoTraits>
class Registry;

/// Named factories of one kind of product: Registry<std::shared_ptr<Model>(const SampleSpec&)>.
///
/// A product registers itself in the last lines of its .cc file, whose target needs `alwayslink = True`:
///
///     const bool mlp_registered = Models::global().add<MlpConfig>("mlp", "multi-layer perceptron", make_mlp);
///
/// Facts that users must know about a product before it is made are registered as its traits, a struct. Traits may
/// depend on the fields of the product's config, and no one needs to know the product's name:
///
///     using Strategies = Registry<std::unique_ptr<Strategy>(Context), StrategyTraits>;
///     Strategies::global().add<SgdConfig>("sgd", "help", StrategyTraits{.exact = true}, make_sgd);
///     Strategies::global().add<LsgdConfig>("lsgd", "help", [](const LsgdConfig& config) { return ...; }, make_lsgd);
///     if (config.strategy.traits().exact) ...
///
/// If all traits follow from the class of a product, Traits has a template of<Class>(), and a factory that returns a
/// std::shared_ptr<Class> is registered without them (models/model_traits.h).
///
/// Registration happens before main(). After that, a registry is only read, from any thread.
template <class Product, class... Args, class Traits>
class Registry<Product(Args...), Traits> {
 public:
  class Choice;

  template <class Config>
  using Make = std::function<Product(const Config&, Args...)>;

  static Registry& global() {
    static Registry registry;
    return registry;
  }

  /// Registers a product. Config has defaults and a visit() (framework/base/config/visitor.h); `help` is one line. A
  /// Config may name one of its keys whose presence selects it without a name: static constexpr const char*
  /// kImplyingKey. Throws std::logic_error if the name is taken, which ends the program before main().
  template <class Config>
    requires std::same_as<Traits, NoTraits>
  bool add(const std::string& name, const std::string& help, std::type_identity_t<Make<Config>> make) {
    return add_factory<Config>(name, help, [](const Config&) { return NoTraits{}; }, std::move(make));
  }

  /// Registers a product whose traits follow from its class: Traits::of<Made>() for a `make` that returns a
  /// std::shared_ptr<Made>.
  template <class Config, class Function>
    requires requires {
      Traits::template of<typename std::invoke_result_t<const Function&, const Config&, Args...>::element_type>();
    }
  bool add(const std::string& name, const std::string& help, Function make) {
    using Made = typename std::invoke_result_t<const Function&, const Config&, Args...>::element_type;
    return add_factory<Config>(name, help, [](const Config&) { return Traits::template of<Made>(); }, std::move(make));
  }

  /// Registers a product with traits. `traits` is a Traits, or a function of the config that returns one.
  template <class Config, class TraitsOf>
    requires(!std::same_as<Traits, NoTraits>)
  bool add(const std::string& name, const std::string& help, TraitsOf traits, std::type_identity_t<Make<Config>> make) {
    if constexpr (std::same_as<TraitsOf, Traits>) {
      return add_factory<Config>(name, help, [traits](const Config&) { return traits; }, std::move(make));
    } else {
      return add_factory<Config>(name, help, std::move(traits), std::move(make));
    }
  }

  /// Returns the registered names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

  /// Returns the names of the products whose traits satisfy `holds`, a predicate or a member of Traits. The traits are
  /// computed from default fields.
  template <class Predicate>
  std::vector<std::string> names_where(const Predicate& holds) const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) {
      if (std::invoke(holds, entry.factory()->traits())) all.push_back(name);
    }
    return all;
  }

 private:
  // A config struct together with the function that makes a product from it.
  class Factory {
   public:
    virtual ~Factory() = default;
    virtual void visit(config::Visitor& visitor) = 0;
    virtual Traits traits() const = 0;
    virtual Product make(Args... args) const = 0;
    virtual std::unique_ptr<Factory> clone() const = 0;
  };

  template <class Config>
  class FactoryOf final : public Factory {
   public:
    FactoryOf(std::function<Traits(const Config&)> traits, Make<Config> make)
        : traits_(std::move(traits)), make_(std::move(make)) {}
    void visit(config::Visitor& visitor) override { config_.visit(visitor); }
    Traits traits() const override { return traits_(config_); }
    Product make(Args... args) const override { return make_(config_, std::forward<Args>(args)...); }
    std::unique_ptr<Factory> clone() const override { return std::make_unique<FactoryOf>(*this); }

   private:
    std::function<Traits(const Config&)> traits_;
    Make<Config> make_;
    Config config_;
  };

  template <class Config>
  bool add_factory(const std::string& name, const std::string& help, std::function<Traits(const Config&)> traits,
                   Make<Config> make) {
    Entry entry{help, [traits = std::move(traits), make = std::move(make)] {
                  return std::make_unique<FactoryOf<Config>>(traits, make);
                }};
    if constexpr (requires { Config::kImplyingKey; }) entry.implying_key = Config::kImplyingKey;
    if (!entries_.emplace(name, entry).second) throw std::logic_error("registered twice: " + name);
    return true;
  }

  struct Entry {
    std::string help;
    std::function<std::unique_ptr<Factory>()> factory;
    std::string implying_key{};
  };
  std::map<std::string, Entry> entries_;
};

/// One entry of the global registry with its own config. A config struct has one for a section such as `model`.
///
///     Models::Choice model{"lenet"};                       // default; without one the section must be written
///     v("model", model, "the network to train");           // in visit()
///     std::shared_ptr<Model> net = config.model.make(spec);
///
/// A value type: copies are independent. Selecting a name that is not registered throws std::out_of_range.
template <class Product, class... Args, class Traits>
class Registry<Product(Args...), Traits>::Choice final : public config::Selection {
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
  std::string name_implied_by(const std::string& key) const override {
    for (const auto& [name, entry] : Registry::global().entries_) {
      if (!key.empty() && entry.implying_key == key) return name;
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

  /// Makes the product from the current fields. Throws std::logic_error if nothing is selected.
  Product make(Args... args) const { return selected_factory().make(std::forward<Args>(args)...); }

  /// Returns the traits of the product that make() would make now. Throws as make() does.
  Traits traits() const { return selected_factory().traits(); }

 private:
  static const Entry& entry(const std::string& name) {
    const auto& entries = Registry::global().entries_;
    const auto found = entries.find(name);
    if (found == entries.end()) throw std::out_of_range("nothing is registered as \"" + name + "\"");
    return found->second;
  }

  const Factory& selected_factory() const {
    if (!factory_) throw std::logic_error("make() of a choice in which nothing is selected");
    return *factory_;
  }

  std::string name_;
  std::unique_ptr<Factory> factory_;
};

}  // namespace phalanx
