// SPDX-License-Identifier: Apache-2.0
// Operators of torch.export's training IR (torch 2.13) and of its core ATen IR. The list is an allowlist, so operators
// that have not been reviewed are refused.
#include "models/exported/operators.h"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace phalanx::exported {
namespace {

using Names = std::set<std::string, std::less<>>;

Names words(const std::string& text) {
  std::istringstream stream(text);
  Names all;
  for (std::string word; stream >> word;) all.insert(std::move(word));
  return all;
}

// Elementwise operators. "add_" is allowed wherever "add" is.
const Names& pointwise() {
  static const Names kAll = words(R"(
    abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
    atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
    clamp_max clamp_min clip copysign cos cosh cumprod cumsum deg2rad digamma div divide elu eq erf erfc erfinv exp exp2
    expm1 fill fix float_power floor floor_divide fmod frac gcd ge gelu greater greater_equal gt hardsigmoid hardswish
    hardtanh heaviside hypot i0 lcm le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logical_and
    logical_not logical_or logical_xor logit lt masked_fill mish mul multiply mvlgamma nan_to_num ne neg negative
    nextafter not_equal polygamma pow prelu rad2deg reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid
    sign silu sin sinc sinh softplus sqrt square sub subtract tan tanh threshold triu tril true_divide trunc xlogy zero
    addmm addbmm addmv addr baddbmm index_add index_copy index_fill index_put masked_scatter scatter scatter_add
    scatter_reduce index_reduce put copy dropout alpha_dropout feature_dropout feature_alpha_dropout rrelu bernoulli
    normal uniform exponential random cauchy geometric log_normal renorm
  )");
  return kAll;
}

// Operators that return a new tensor or a view. They change nothing in place, except running statistics.
const Names& others() {
  static const Names kAll = words(R"(
    __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__
    _adaptive_avg_pool2d _adaptive_avg_pool3d _cdist_forward _conj _convolution _convolution_mode
    _embedding_bag _fused_rms_norm _local_scalar_dense _log_softmax _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _pdist_forward _safe_softmax
    _scaled_dot_product_flash_attention_for_cpu _softmax _to_copy _trilinear _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    _weight_norm _weight_norm_interface
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid_generator alias all amax amin aminmax any arange argmax argmin argsort as_strided
    atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d
    batch_norm bilinear bincount binary_cross_entropy binary_cross_entropy_with_logits block_diag bmm broadcast_tensors
    broadcast_to bucketize
    cartesian_prod cat cdist chain_matmul channel_shuffle chunk clone col2im column_stack combinations concat
    concatenate conj constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    convolution corrcoef cosine_embedding_loss cosine_similarity count_nonzero cov cross cross_entropy_loss cummax cummin
    detach detach_ diag diag_embed diagflat diagonal diagonal_copy diff dist dot dsplit dstack
    einsum embedding embedding_bag empty empty_like empty_permuted empty_strided equal expand expand_as expand_copy eye
    fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_irfft fft_irfft2
    fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn flatten flip fliplr flipud full full_like
    gather glu grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell
    hann_window hamming_window hardshrink hinge_embedding_loss histc hsplit hstack huber_loss
    im2col imag index index_select inner instance_norm is_nonzero isclose isfinite isinf isnan isneginf isposinf isreal
    item kl_div kron kthvalue
    l1_loss layer_norm ldexp lift_fresh lift_fresh_copy linalg_cross linalg_det linalg_inv linalg_matrix_norm
    linalg_multi_dot linalg_norm linalg_solve linalg_vecdot linalg_vector_norm linear linspace log_sigmoid log_softmax
    logaddexp logaddexp2 logcumsumexp logsumexp logspace lstm lstm_cell
    margin_ranking_loss masked_select matmul matrix_exp max max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices maximum mean median meshgrid min minimum mm mode moveaxis
    movedim mse_loss msort multi_margin_loss multilabel_margin_loss multinomial mv
    nanmean nanmedian nansum narrow narrow_copy native_batch_norm native_dropout native_group_norm native_layer_norm
    new_empty new_empty_strided new_full new_ones new_zeros nll_loss nll_loss2d nll_loss_forward nll_loss2d_forward
    nll_loss_nd nonzero norm norm_except_dim numpy_T matrix_H mH mT one_hot ones ones_like outer
    pad pad_sequence pairwise_distance permute permute_copy pixel_shuffle pixel_unshuffle poisson_nll_loss polar prod
    quantile nanquantile
    rand rand_like randint randint_like randn randn_like randperm ravel real reflection_pad1d reflection_pad2d
    reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape reshape_as
    resolve_conj resolve_neg rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90
    scalar_tensor scaled_dot_product_attention searchsorted select select_copy select_scatter slice slice_copy
    slice_scatter smooth_l1_loss soft_margin_loss softmax softmin softshrink sort special_erf special_erfc special_erfinv
    special_exp2 special_expit special_expm1 special_gammaln special_log1p special_log_softmax special_logit
    special_logsumexp special_ndtr special_round special_sinc special_softmax special_xlog1py special_xlogy split
    split_copy split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack std std_mean sum sum_to_size swapaxes
    swapdims sym_numel sym_size sym_stride sym_storage_offset
    t t_copy take take_along_dim tensor_split tensordot tile to topk trace transpose transpose_copy trapezoid
    tril_indices triplet_margin_loss triu_indices type_as
    unbind unbind_copy unflatten unfold unsqueeze unsqueeze_copy upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    vander var var_mean vdot view view_as view_as_complex view_as_real view_copy vsplit vstack where zeros zeros_like
  )");
  return kAll;
}

// The allowed values of string arguments, by the name of the argument. Each operator checks them further itself.
const std::map<std::string, Names, std::less<>>& words_of_arguments() {
  static const std::map<std::string, Names, std::less<>> kAll{
      {"rounding_mode", words("trunc floor")},
      {"approximate", words("none tanh")},
      {"mode", words("constant reflect replicate circular")},
      {"padding", words("same valid")},
      {"indexing", words("ij xy")},
      {"reduce", words("sum prod mean amax amin multiply add")},
      {"side", words("left right")},
      {"interpolation", words("linear lower higher midpoint nearest")},
      {"norm", words("forward backward ortho")},
      {"ord", words("fro nuc")},
  };
  return kAll;
}

bool is_equation(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,.-> ") == std::string_view::npos;
}

}  // namespace

bool may_be_called(const std::string& name) {
  constexpr std::string_view kLibrary = "aten::";
  if (!name.starts_with(kLibrary)) return false;
  std::string_view own = std::string_view(name).substr(kLibrary.size());
  if (others().contains(own)) return true;
  if (own.ends_with('_')) own.remove_suffix(1);
  return pointwise().contains(own);
}

void check_argument(const c10::Argument& formal, const c10::IValue& constant) {
  if (formal.is_out())
    throw std::runtime_error("writes into the argument " + formal.name() + ", which is not supported");
  if (!constant.isString()) return;
  const std::string& text = constant.toStringRef();
  const auto found = words_of_arguments().find(formal.name());
  const bool known = found != words_of_arguments().end() ? found->second.contains(text)
                                                         : formal.name() == "equation" && is_equation(text);
  if (!known) throw std::runtime_error("has \"" + text + "\" as " + formal.name() + ", which is not supported");
}

}  // namespace phalanx::exported
